"""Corpora of any size, on one machine or a cluster: one pure function over batches of passages, and what drives it.

`process.process(rows, job)` is the function. `workers` runs it in local processes that may die, `cluster` hands the
same work to Ray Data, `folder` keeps what is done, and `store` reads facts back at query time.
"""
