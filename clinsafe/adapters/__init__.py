"""Third-party models, endpoints and frameworks behind our protocols."""
