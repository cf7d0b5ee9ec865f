"""Fields that came later: a record without them keeps the bytes, and so the hash, that it had before they existed."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

from clinsafe.content import Record


class Additive(Record):
    """A record whose `later` fields leave no trace where they are None."""

    later: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _as_ever(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = plain(self)
        return {name: value for name, value in found.items() if name not in self.later or value is not None}
