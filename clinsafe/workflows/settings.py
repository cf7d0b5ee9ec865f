"""``clinsafe.yaml``: one commented file that says what is audited, for what use, and by which rules.

``clinsafe init`` writes it together with its JSON Schema; its hash goes into the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.checklist.gates import Gate
from clinsafe.content import Record, load_yaml
from clinsafe.errors import ContentError
from clinsafe.reports.declaration import Declaration, DeclaredClass, Disposition
from clinsafe.workflows.audit import Subject

FILE_NAME = "clinsafe.yaml"
SCHEMA_NAME = "clinsafe.schema.json"
POLICIES = {
    "none": "none: a conflicting passage is shown like any other",
    "flag": "flag: a conflicting passage keeps its rank and is marked",
    "demote": "demote: a conflicting passage is marked and moved down",
    "withhold": "withhold: a conflicting passage is kept back, and said to be",
}


class ModelEntry(Record):
    """One model, with what differs from the defaults; a plain string is its name."""

    model: Annotated[str, Field(min_length=1)]
    revision: str | None = None
    backend: Literal["torch", "onnx"] = "torch"
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 32
    prompts: str = "auto"
    query_prompt: str | None = None
    passage_prompt: str | None = None
    pooling: Literal["cls", "mean", "last"] | None = None
    base_url: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 60.0
    device: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return {"model": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}


class Declared(Record):
    """What people declare; an empty text is "not declared"."""

    document_number: str = ""
    document_version: str = ""
    product: str = ""
    product_version: str = ""
    manufacturer: str = ""
    operator: str = ""
    intended_use: str = ""
    users: str = ""
    environment: str = ""
    population: str = ""
    pipeline: str = ""
    misuse: list[str] = Field(default_factory=list)
    classes: list[DeclaredClass] = Field(default_factory=list)
    required_roles: list[str] = Field(default_factory=list)
    dispositions: list[Disposition] = Field(default_factory=list)


class Settings(Record):
    """The file."""

    declaration: Declared = Declared()
    models: Annotated[list[ModelEntry], Field(min_length=1)]
    protocol: str = "checklist"
    policy: Literal["", "none", "flag", "demote", "withhold"] = ""
    gates: list[Gate] = Field(default_factory=list)
    guard: str = ""
    checklist_answers: str = ""
    content: str = ""


@dataclass(frozen=True)
class Plan:
    """What a settings file asks for, with paths that hold from any folder."""

    file: Path
    settings: Settings

    def subjects(self, options: ModelOptions, only: Sequence[str] = ()) -> list[Subject]:
        """The models; `only` replaces them by name, `options` is what the command line says about all of them."""
        found = []
        for entry in only or self.settings.models:
            given = entry if isinstance(entry, ModelEntry) else ModelEntry(model=entry)
            changed = given.model_dump(exclude={"model"}, exclude_unset=True)
            said = vars(options.meant_for(given.model))
            merged = {name: value for name, value in said.items() if value != _default(name)}
            found.append(Subject(self._model(given.model), ModelOptions(**{**changed, **merged})))
        return found

    @property
    def protocol(self) -> str:
        """Name, or the path of an own protocol file beside the settings."""
        name = self.settings.protocol
        return str(self.file.parent / name) if Path(name).suffix in (".yaml", ".yml") else name

    @property
    def guard(self) -> str:
        """Policy of the guard to measure: a name, or the path of an own file beside the settings; "" for none."""
        name = self.settings.guard
        return str(self.file.parent / name) if Path(name).suffix in (".yaml", ".yml") else name

    @property
    def answers(self) -> Path | None:
        """The institution's answers."""
        name = self.settings.checklist_answers
        return self.file.parent / name if name else None

    @property
    def overlay(self) -> Path | None:
        """The overlay of controlled content."""
        return self.file.parent / self.settings.content if self.settings.content else None

    @property
    def declaration(self) -> Declaration:
        """What is declared, in the report's words."""
        said = {name: value for name, value in self.settings.declaration if value}
        policy = {"policy": POLICIES[self.settings.policy]} if self.settings.policy else {}
        return Declaration(**said, **policy)

    def _model(self, spec: str) -> str:
        """A folder or file beside the settings is meant from there, not from where the command runs."""
        beside = self.file.parent / spec
        return str(beside) if spec.startswith(".") and beside.exists() else spec


def _default(option: str) -> object:
    return getattr(ModelOptions(), option)


def load_settings(path: Path) -> Plan:
    """Read the file; raises ContentError with file, line and field."""
    plan = Plan(path, load_yaml(path, Settings))
    for name, found in (("checklist_answers", plan.answers), ("content", plan.overlay)):
        if found is not None and not found.exists():
            raise ContentError(path, None, name, f"{found} is not there")
    return plan


def schema() -> str:
    """The JSON Schema of the file, for editors that complete and check YAML."""
    described = Settings.model_json_schema()
    described["title"] = FILE_NAME
    return json.dumps(described, indent=1) + "\n"


TEMPLATE = f"""\
# yaml-language-server: $schema={SCHEMA_NAME}
# What is audited, for what use, by which rules. `clinsafe audit` in this folder reads it; the report holds its hash.

# What people declare. Stored and printed with its date, never computed or judged. What stays empty is printed as
# "not declared".
declaration:
  document_number: ""    # of the report, in your document control
  document_version: ""
  product: ""            # the system that the model will be part of, with its version and who makes it
  product_version: ""
  manufacturer: ""
  operator: ""           # who runs the audit
  intended_use: ""       # for example: passages of our guidelines for physicians who prescribe on the ward
  users: ""              # who sees the result
  environment: ""        # where: ward, office, telephone triage
  population: ""         # whose care it touches
  pipeline: ""           # chunking, index, k, reranker and thresholds around the model, if they are known
  misuse: []             # foreseeable misuse beyond what the report lists
  classes: []            # one entry a scheme; the schemes and their values: `clinsafe checklist classes`
  #  - {{scheme: mdr-class, value: IIa, rationale: informs decisions on medication, date: 2026-11-30, by: A. Example}}
  required_roles: []     # who must sign before the report counts; `report verify` says who is missing
  #  - clinical safety officer
  dispositions: []       # decided about the anomalies of a hazard: open, accepted, controlled elsewhere, not used
  #  - {{hazard: negation, decision: controlled elsewhere, rationale: why, by: who, date: 2026-11-30}}

# Models to audit together: an alias (minilm), a folder, an ONNX file, organisation/model, endpoint:NAME.
models:
  - minilm
  # - model: nomic-ai/nomic-embed-text-v1
  #   prompts: nomic             # auto (the model's own), none, nomic, e5, bge, gte, qwen
  # - model: endpoint:my-model   # the key comes from CLINSAFE_API_KEY, never from a file
  #   base_url: http://127.0.0.1:8080/v1

# checklist, paper, skill, or the path of a protocol file of your own (it ends in .yaml).
protocol: checklist

# What the deployed system does with a passage that conflicts with the query: none, flag, demote, withhold.
policy: ""

# Gates of your own instead of the protocol's, read per hazard on one-sided 95 % bounds. Empty: the protocol's.
gates: []
#  - {{metric: inversion, at_most: 0.10, why: our risk committee, 2026-11-30}}

# Measure clinsafe's guard beside the models: a policy by name (default, report, strict), or a policy file of your own.
# Empty: the models alone.
guard: ""

checklist_answers: ""   # items 8 to 10: the file that `clinsafe checklist init` writes
content: ""             # a folder of controlled content that wins over the packaged one
"""
