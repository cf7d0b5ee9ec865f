"""The steps of medical normalisation, one a module; `clinsafe.rag.normalise` puts them together."""
