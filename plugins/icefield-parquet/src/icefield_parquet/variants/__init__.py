"""Variants: the type that they are shredded into, its columns, whole variants made of them, and their values."""

from icefield_parquet.variants.decoding import variant_to_python as variant_to_python
