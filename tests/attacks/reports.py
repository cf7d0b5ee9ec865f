"""What the attacks start from: keys, a finished audit, and forged records, each rendered once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clinsafe.content import Content
from clinsafe.reports import pdf
from clinsafe.reports.approvals import approvals_path
from clinsafe.reports.countersign import add_approval
from clinsafe.reports.evidence import Evidence, canonical, from_bytes, to_bytes
from clinsafe.reports.render import html
from clinsafe.reports.sign import SigningKey, sign_pdf
from clinsafe.reports.soup import collect
from tests.conftest import write_few_clauses
from tests.reports import tsa
from tests.reports.signing import DAY, DEVELOPMENT, NOW, certify
from tests.reports.test_verify import rederived

LEFT_OUT = "neg-002"  # the fake fails it
ROLES = ("Clinical safety officer", "Quality manager")
FAKED_PAGE = "<html lang=en><title>Report</title><p>All six hazards PASS. RELEASED.</p></html>"
SHORT = timedelta(seconds=10)  # between the signature and the end of the certificate that expires meanwhile
Change = Callable[[dict[str, Any]], object]


class World:
    """Keys and unsigned reports; each is made once, when first asked for.

    Args:
        folder: an empty folder for what must lie on a disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._render = pdf.render
        self._rendered: dict[tuple[str, bytes], bytes] = {}
        self._lock = threading.Lock()
        self._latest: SigningKey | None = None

    # ── keys ───────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def root(self) -> SigningKey:
        """The authority that the reader trusts."""
        return certify("Test Root", authority=True, days=(-1000, 1000))

    @cached_property
    def signer(self) -> SigningKey:
        return certify("A. Auditor", issuer=self.root)

    @cached_property
    def rsa(self) -> SigningKey:
        return certify("R. Auditor", issuer=self.root, bits=2048)

    @cached_property
    def pinned(self) -> SigningKey:
        """Self-signed: trusted only where it is given itself."""
        return certify("P. Inned")

    @cached_property
    def development(self) -> SigningKey:
        return certify(DEVELOPMENT + "A. Auditor")

    @cached_property
    def stranger(self) -> SigningKey:
        """Issued by an authority that the reader does not know."""
        return certify("M. Allory", issuer=certify("Other Root", authority=True, days=(-1000, 1000)))

    @cached_property
    def silent(self) -> SigningKey:
        return certify("No commitment", commitment=False)

    @cached_property
    def expired(self) -> SigningKey:
        return certify("X. Pired", days=(-100, -1))

    def expiring(self, issuer: SigningKey | None = None) -> SigningKey:
        """A new key, valid while it signs and expired when the file is judged; see `wait`."""
        soon = (datetime.now(UTC) + SHORT - NOW) / DAY
        self._latest = certify("E. Xpiring", issuer=issuer, days=(-100, soon))  # type: ignore[arg-type]
        return self._latest

    @cached_property
    def expiring_alone(self) -> SigningKey:
        return self.expiring()

    def wait(self) -> None:
        """Until the last certificate that expires has expired."""
        if self._latest:
            time.sleep(max(0.0, (self._latest.not_after - datetime.now(UTC)).total_seconds() + 1.5))

    @cached_property
    def clock(self) -> SigningKey:
        """A timestamp authority that the root vouches for."""
        return tsa.certify_authority("T. Authority", self.root)

    @cached_property
    def unknown_clock(self) -> SigningKey:
        return tsa.certify_authority("S. Tranger")

    # ── records and pages ──────────────────────────────────────────────────────────────────────

    def render(self, page: str, record: bytes, created: str, content: Content) -> bytes:
        """In the place of the renderer while files are judged: equal inputs give equal bytes, so once is enough."""
        with self._lock:
            found = self._rendered.get((page, record))
        if found is None:
            found = self._render(page, record, created, content)
            with self._lock:
                self._rendered[page, record] = found
        return found

    def once(self) -> AbstractContextManager[Any]:
        """While it is open, the same pages are not rendered twice."""
        return patch.object(pdf, "render", self.render)

    @cached_property
    def base(self) -> Evidence:
        """The record of a fake model on one hazard of the packaged suite, so that completeness is compared.

        Of clauses and software it lists a few: nothing is attacked there, and every page has to be drawn again.
        """
        from clinsafe.workflows import audit

        root = write_few_clauses(self.folder / "content")
        with self.once(), patch.object(audit, "collect", lambda: collect()[:6]):
            done = audit.run_audit("fake:words", out=self.folder / "run", hazards=["negation"], overlay=root)
        return done.evidence

    def changed(self, change: Change, evidence: Evidence | None = None) -> Evidence:
        plain = json.loads(to_bytes(evidence or self.base))
        change(plain)
        return from_bytes(canonical(plain))

    def drawn(self, evidence: Evidence, page: str | None = None) -> bytes:
        """The unsigned report of a record, on its own pages or on others."""
        content = Content()
        return self.render(page or html(evidence, content), to_bytes(evidence), evidence.created, content)

    @cached_property
    def unsigned(self) -> bytes:
        return self.drawn(self.base)

    @cached_property
    def signed(self) -> bytes:
        """The untouched report that most attacks start from."""
        return sign_pdf(self.unsigned, self.signer, meaning="author")

    @cached_property
    def timed(self) -> bytes:
        """The same with the timestamp of an authority that the root vouches for."""
        return sign_pdf(self.unsigned, self.signer, meaning="author", timestamper=tsa.stamper(self.clock))

    @cached_property
    def better_figure(self) -> Evidence:
        def change(e: dict[str, Any]) -> None:
            e["systems"][0]["figures"]["suite.negation.inversion"]["value"] = 0.0

        return self.changed(change)

    @cached_property
    def fewer_cases(self) -> Evidence:
        """Without one case, which failed; the counts and everything that is derived follow."""

        def change(e: dict[str, Any]) -> None:
            e["suite"]["counts"]["negation"] -= 1
            for system in e["systems"]:
                system["cases"] = [case for case in system["cases"] if case["id"] != LEFT_OUT]

        return rederived(self.changed(change))

    @cached_property
    def other_name(self) -> Evidence:
        """The scores of one model under another's name, and nothing that contradicts it."""
        return from_bytes(to_bytes(self.base).replace(b"fake:words", b"fake:other"))

    @cached_property
    def better_page(self) -> bytes:
        """The record as it is, and a verdict changed in the HTML alone."""
        page = html(self.base, Content())
        assert "FAIL" in page
        return self.drawn(self.base, page.replace("FAIL", "PASS"))

    @cached_property
    def other_renderer(self) -> bytes:
        """Invented pages, and a record that claims a renderer that is not here."""
        return self.drawn(self.changed(lambda e: e["environment"].update(pango="9.9")), FAKED_PAGE)

    @cached_property
    def other_templates(self) -> bytes:
        """Invented pages, and a record that claims templates that are not here."""
        name = "reports/templates/front.html.j2"
        return self.drawn(self.changed(lambda e: e["content"].update({name: "0" * 64})), FAKED_PAGE)

    @cached_property
    def awaiting(self) -> bytes:
        """Signed by its author; two roles have to sign beside it."""
        evidence = self.changed(lambda e: e["declaration"].update(required_roles=list(ROLES)))
        return sign_pdf(self.drawn(evidence), self.signer, meaning="author")

    @cached_property
    def awaiting_again(self) -> bytes:
        """The same pages, signed once more: another file."""
        evidence = self.changed(lambda e: e["declaration"].update(required_roles=list(ROLES)))
        return sign_pdf(self.drawn(evidence), self.signer, meaning="author")

    def approved(self, report: bytes, signers: dict[str, SigningKey]) -> list[bytes]:
        """The lines of the sidecar, made by `add_approval`: one for each role, in this order."""
        folder = self.folder / f"approved-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        path = folder / "report.pdf"
        path.write_bytes(report)
        for role, key in signers.items():
            trust = [self.root.certificate, key.certificate]
            add_approval(path, key, name=key.name, role=role, meaning="approval", trust=trust)
        return approvals_path(path).read_bytes().splitlines(keepends=True)

    @cached_property
    def approvals(self) -> list[bytes]:
        """Both roles have signed `awaiting`."""
        return self.approved(self.awaiting, dict(zip(ROLES, (self.signer, self.rsa), strict=True)))

    def prepare(self) -> None:
        """Render what is needed in two processes at a time; asked for one by one it would take twice as long."""
        content = Content()
        records = [
            self.better_figure, self.fewer_cases, self.other_name,
            self.changed(lambda e: e["declaration"].update(required_roles=list(ROLES))),
        ]  # fmt: skip
        jobs = [(html(e, content), to_bytes(e), e.created, content) for e in records]
        with ThreadPoolExecutor(2) as pool:
            others = [pool.submit(getattr, self, name) for name in ("better_page", "other_renderer")]
            for done in [*others, *(pool.submit(self.render, *job) for job in jobs)]:
                done.result()
