"""The six built-in filters, one file a hazard. Each reads its rule pack from ``mitigations/<hazard>.yaml``."""
