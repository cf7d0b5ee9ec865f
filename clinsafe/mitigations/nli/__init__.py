"""The NLI guardrail's parts: its settings, which sentences are compared, and the calibrated threshold."""
