"""The operators, one file per family.  Importing the package fills `REGISTRY` and `NUMPY`."""
