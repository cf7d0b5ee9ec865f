"""Numbers of a clinical text: values, units, schedules, what they belong to, and when two of them disagree."""
