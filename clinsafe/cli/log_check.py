"""What a check of a decision log found: the chain and its checkpoints, printed, as JSON, and what it cannot know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress, prose

if TYPE_CHECKING:
    from clinsafe.oversight.base import ChainLog
    from clinsafe.oversight.checkpoint import Check, Checkpoint, Sign
    from clinsafe.oversight.walk import Chain, Fault
    from clinsafe.reports.sign import SigningKey

PREDICATE = "urn:clinsafe:log-checkpoint:v1"
SUBJECT = "checkpoint"


def signing(key: SigningKey) -> Sign:
    """How `clinsafe.oversight.checkpoint.make` signs with this key."""
    from clinsafe.reports.dsse import attest

    def sign(data: bytes) -> bytes:
        return json.dumps(attest({SUBJECT: data}, key, predicate_type=PREDICATE, predicate={})).encode()

    return sign


class Found:
    """What a check of a log and its checkpoints found."""

    def __init__(
        self, log: ChainLog, files: Sequence[Path], trust: Sequence[Path] | None, log_id: str | None, *,
        compare: bool = True, signer: SigningKey | None = None,
    ) -> None:  # fmt: skip
        from clinsafe.oversight import checkpoint as points
        from clinsafe.oversight.walk import Fault

        self.log, self.compared = log, compare
        self.development = False
        held: list[Checkpoint] = []
        faults: list[Fault] = []
        if files:
            held, faults = points.read(files, self._checker(trust, signer))
        with progress() as stage:
            self.chain: Chain = log.inspect(
                [one.statement.seq for one in held], lambda count: stage("Checking records", count, 0)
            )
        self.checkpoints = held
        chain = self.chain
        self.faults: list[Fault] = [*([chain.fault] if chain.fault else []), *faults]
        if compare:
            self.faults += points.compare(chain, held)
        if log_id and chain.log_id and log_id != chain.log_id:
            self.faults.append(
                Fault("other_log", 1, "the start", f"this is log {chain.log_id}, not log {log_id}")
            )

    def _checker(self, trust: Sequence[Path] | None, signer: SigningKey | None) -> Check:
        from cryptography import x509

        from clinsafe.reports.dsse import check
        from clinsafe.reports.verify import trusted_certificates

        der = [signer.certificate] if signer and not trust else trusted_certificates(list(trust or ()))
        certificates = [x509.load_der_x509_certificate(one) for one in der]

        def checked(data: bytes, signature: bytes, moment: datetime) -> Sequence[str]:
            envelope: Any = json.loads(signature)  # ValueError: no checkpoint
            # A certificate has to be valid when the checkpoint was made; that time is the signer's own.
            found = check(envelope, {SUBJECT: data}, certificates, now=moment)
            self.development |= found.development
            return [] if found.valid else found.problems or ["the signature does not hold"]

        return checked

    @property
    def unknown(self) -> list[str]:
        """What this check cannot know."""
        if self.faults:
            return []
        covered = max((one.statement.seq for one in self.checkpoints), default=0)
        open_end = self.chain.count - covered
        if not covered:
            said = [
                "without a checkpoint, a cut tail cannot be seen, nor a log written anew by somebody with its key; "
                "make one with `clinsafe log checkpoint` and keep it elsewhere"
            ]
            if self.chain.announced:
                said.append(
                    f"the log announces a checkpoint of record {self.chain.announced}, which was not compared"
                )
            return said
        said = [
            f"records after {covered}, the newest checkpoint: whether there were more than the {open_end} that are here"
        ]
        said.append("whether a newer checkpoint was taken away together with the records that announce it")
        return said

    def show(self) -> None:
        """Print it."""
        console = stdout()
        chain = self.chain
        lines = [
            ("log", self.log.where),
            ("id", chain.log_id or "not known"),
            ("records", f"{chain.count:,} intact from the first on"),
            *(
                ("checkpoint", f"of record {one.statement.seq:,}, {one.statement.time}: {one.name}")
                for one in self.checkpoints
            ),
            *(("fault", str(fault)) for fault in self.faults),
        ]
        for label, text in lines:
            console.print(f"{label:<12}{printable(text)}", markup=False, soft_wrap=True)
        if self.development:
            prose(console, "note: a DEVELOPMENT key proves nothing about who signed")
        for text in self.unknown:
            prose(console, f"not known: {text}")
        first = min(self.faults, key=lambda fault: fault.seq or 10**15, default=None)
        lacking = all(fault.kind == "checkpoint_missing" for fault in self.faults)
        verdict = "intact" if first is None else f"{'NOT COMPLETE' if lacking else 'ALTERED'}: {first}"
        console.print(
            printable(verdict),
            style="bold green" if first is None else "bold red",
            markup=False,
            soft_wrap=True,
        )

    def to_json(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "schema_version": 1,
            "log": self.log.where,
            "log_id": self.chain.log_id,
            "intact": not self.faults,
            "records": self.chain.count,
            "faults": [
                {"kind": one.kind, "record": one.seq, "place": one.place, "detail": one.detail} for one in self.faults
            ],
            "checkpoints": [
                {"file": one.name, "record": one.statement.seq, "time": one.statement.time} for one in self.checkpoints
            ],
            "not_known": self.unknown,
        }  # fmt: skip
