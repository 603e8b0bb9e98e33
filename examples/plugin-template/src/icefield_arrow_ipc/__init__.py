"""Arrow IPC files for Icefield."""
