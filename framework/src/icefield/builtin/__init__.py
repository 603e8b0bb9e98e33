"""The kernel's own plugin, through the same hooks as any other."""
