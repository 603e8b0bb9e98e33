"""Files that other programs wrote, described and checked before a table takes them."""
