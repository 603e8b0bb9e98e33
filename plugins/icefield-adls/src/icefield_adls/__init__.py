"""Azure Data Lake Storage and Azure Blob Storage for Icefield."""
