"""Variants: the type that a file's variants are shredded into, its columns, and whole variants made of them."""
