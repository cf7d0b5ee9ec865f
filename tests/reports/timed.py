"""Reports with a timestamp, and the check of one."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import Any

import pytest

from clinsafe.reports.pdfcheck import PdfCheck, check_pdf
from clinsafe.reports.sign import SigningKey, sign_pdf
from tests.reports import tsa
from tests.reports.signing import NOW
from tests.reports.signing import World as Plain


class World(Plain):
    """Authorities, too."""

    @cached_property
    def tsa(self) -> SigningKey:
        return tsa.certify_authority("T. Authority", self.authority)

    @cached_property
    def stranger(self) -> SigningKey:
        return tsa.certify_authority("S. Tranger")

    @cached_property
    def stamped(self) -> bytes:
        return self.timed(self.key, self.stranger)

    def timed(self, key: SigningKey, by: SigningKey, off: timedelta = timedelta()) -> bytes:
        """Signed with `key` and timestamped by `by`, whose clock is `off`; no rule of ours in the way."""
        return sign_unchecked(self.unsigned, key, tsa.stamper(by, NOW + off))


def sign_unchecked(document: bytes, key: SigningKey, timestamper: Any) -> bytes:
    """`sign_pdf` with whatever token comes, as another program would take it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clinsafe.reports.timestamps.checked", lambda given, _: given)
        return sign_pdf(document, key, meaning="approval", when=NOW, timestamper=timestamper)


def check(
    document: bytes, trust: list[SigningKey], tsas: list[SigningKey] | None = None, now: Any = NOW
) -> PdfCheck:
    return check_pdf(
        document,
        [key.certificate for key in trust],
        now=now,
        trust_tsa=[key.certificate for key in tsas or []],
    )
