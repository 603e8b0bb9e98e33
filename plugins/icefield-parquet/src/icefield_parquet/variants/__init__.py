"""Variants: the type that a file's variants are shredded into, and the columns of that type."""
