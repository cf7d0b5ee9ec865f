"""Filters that read texts into facts and compare facts. The filter reports; the policy decides."""
