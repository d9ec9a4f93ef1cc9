"""Studies: their meaning, and invalid ones."""

import json
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from pydantic import ValidationError
from replication.base.errors import describe
from replication.base.files import read_yaml
from replication.base.model import REFERENCE, Document
from replication.base.position import read_model
from replication.cli.schema import MODELS, schema_text
from replication.design.config import load_study, load_tier, study_files, study_ids
from replication.design.design import design_study
from replication.design.study_check import check_study
from replication.engines.canonical import canonical_scenarios
from replication.engines.catalogue import ENGINES
from replication.engines.input_file import input_text
from replication.study.claim_model import Quantity, covers
from replication.study.link import ListedLoss, Queue
from replication.study.parameter import Factor, LevelValues
from replication.study.progression import Progression
from replication.study.study import Study
from replication.study.verdict import Verdict
from scripts.write_reference import reference

from tests.unit.conftest import CLAIM, ROOT, quantity
from tests.unit.report_project import TABLE

HERE = Path(__file__).parent
STUDIES = study_ids(ROOT)
#: Short forms, which no model keeps: they have tests below.
EXPANDED = (LevelValues, Progression)
QUEUES = get_args(get_args(Queue)[0])
CHANGE = {"date": "2026-11-22", "was": "a tie passes", "why": "no size"}


def test_a_change_has_its_texts_and_the_verdicts_before_and_after(world):
    verdicts = {"c01": {"before": {"ns2": "direction only"}}, "c02": {"now": "A tie fails."}}
    claims = [CLAIM, CLAIM | {"id": "c02"}, CLAIM | {"id": "c03"}]
    study = world.study(claims=claims, changes=[CHANGE | {"claims": verdicts}])
    (first,), (second,) = (study.changes_to("claims", name) for name in ("c01", "c02"))
    assert first.before == {"ns2": Verdict.DIRECTION_ONLY} and first.after == {}
    assert (first.was, first.now) == ("a tie passes", CLAIM["reading"])
    assert (second.was, second.now) == ("a tie passes", "A tie fails.")
    assert study.changes_to("claims", "c03") == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"date": "2026-02-30"}, "changes.0.date: day"),
        ({"claims": {"c09": {}}}, "claims: 'c09'"),
        ({"claims": {"c01": {}}, "why": None}, "'why'"),
    ],
)
def test_an_invalid_change_is_refused_by_its_field(world, wrong, message):
    with pytest.raises(ValidationError) as caught:
        world.study(claims=[CLAIM], tables=[TABLE], changes=[CHANGE | wrong])
    assert message in describe(caught.value)


def test_an_unjudged_sentence_may_have_changes_but_no_test(world):
    other = {key: CLAIM[key] for key in ("quote", "place", "reading")}
    other |= {"id": "c02", "nature": "background"}
    change = CHANGE | {"claims": {"c02": {"before": {"ns2": "direction only"}}}}
    study = world.study(claims=[CLAIM], unjudged=[other], changes=[change])
    assert [claim.id for claim in study.claims] == ["c01"]
    assert study.changes_to("claims", "c02")[0].now == CLAIM["reading"]
    for wrong in ({"test": CLAIM["test"]}, {"nature": "result"}, {"id": "c01"}):
        with pytest.raises(ValidationError):
            world.study(claims=[CLAIM], unjudged=[other | wrong])


def test_the_committed_schema_matches_the_models_and_describes_every_key():
    path = ROOT / "configs/schemas/study.schema.json"
    assert path.read_text(encoding="utf-8") == schema_text(Study), "run `replicate schemas`"
    page = (ROOT / REFERENCE).read_text(encoding="utf-8")
    assert page == reference(), "run `python workflow/scripts/write_reference.py`"
    schema = json.loads(path.read_text(encoding="utf-8"))
    for name in ("Experiment", "Parameter", "Level", "Table", "Cell", "Claim", "Quantity"):
        for key, entry in schema["$defs"][name]["properties"].items():
            assert entry.get("description"), (name, key)
    flow = schema["$defs"]["Experiment"]["properties"]["flows"]["items"]["properties"]
    assert flow["segment_bytes"]["description"].startswith("Payload")
    validator = jsonschema.Draft202012Validator(schema)
    for study in STUDIES:
        for file in study_files(ROOT, study):
            validator.validate(read_yaml(file))


def files_of(name):
    """The files in configs/ that a model of `cli.schema` reads."""
    if name == "findings":
        return sorted(ROOT.glob("configs/studies/*/findings.yaml"))
    folder = ROOT / "configs" / (name if name == "explanations" else f"{name}s")
    single = ROOT / "configs" / f"{name}.yaml"
    return [single] if single.is_file() else sorted(folder.glob("*.yaml"))


def example_documents(study, designed):
    """The committed studies and settings, canonical scenarios, and an example of what is left."""
    yield from (load_study(ROOT, name) for name in STUDIES)
    yield from (read_model(path, Study) for path in sorted(HERE.glob("anyones/*.yaml")))
    yield study
    for name, model in MODELS.items():
        if name not in ("study", "scenario"):
            yield from (read_model(path, model) for path in files_of(name))
    for engine in ENGINES.values():
        yield from canonical_scenarios(ROOT, engine)
    yield from (run.scenario for run in designed)


def declared(model, key):
    """A key, and the model that declares it for others; queues share their keys."""
    if model in QUEUES:
        return "Queue", key
    models = [base for base in reversed(model.__mro__) if issubclass(base, Document)]
    return next(base for base in models if key in base.model_fields).__name__, key


def note_keys(value, used):
    """Add model and key of everything that a document says to `used`."""
    if isinstance(value, Document):
        for key in value.model_fields_set:
            used.add(declared(type(value), key))
        for key in type(value).model_fields:
            note_keys(getattr(value, key), used)
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            note_keys(part, used)


def declared_keys():
    """Model and key of all that a file may say."""
    schemas = [model.model_json_schema() for model in MODELS.values()]
    named = {schema["title"] for schema in schemas}
    for schema in schemas:
        named |= schema.get("$defs", {}).keys()
    models = [Document]
    for model in models:
        models += model.__subclasses__()
        if model.__name__ in named and model not in EXPANDED:
            for key in model.model_fields:
                yield declared(model, key)


def test_each_key_has_an_example_that_is_valid_and_runs():
    study = read_model(HERE / "example_keys.yaml", Study)
    check_study(study, HERE / "example_keys.csv")
    designed = design_study(study, load_tier(ROOT, "quick"), ["linux"])
    assert designed and not any(run.refusal for run in designed)
    for run in designed:
        assert run.scenario.sha256 in input_text(run.scenario, ENGINES["linux"])
    used = set()
    # It names files of opportunities.
    designed += design_study(load_study(ROOT, "rebbr"), load_tier(ROOT, "quick"), ["linux"])
    for document in example_documents(study, designed):
        note_keys(document, used)
    unused = sorted(set(declared_keys()) - used)
    assert not unused, "give each an example (tests/unit/example_keys.yaml), or remove it"


def levels(**range_):
    tag = {"id": "start", "label": "Start", "unit": "s", "published": {"place": "Section 2"}}
    return Factor.model_validate(tag | {"levels": range_}).levels


def test_levels_are_generated_by_their_values_without_rounding():
    units = {"times": 0.001, "key": "{}ms", "label": "{} ms", "quick": [175]}
    generated = levels(values=[5, 175], set="delay_s", **units)
    rows = [(level.key, level.set["delay_s"], level.quick) for level in generated]
    assert rows == [("5ms", 0.005, False), ("175ms", 0.175, True)]
    counts = levels(values=[2, 4], set="flows")
    assert [repr(level.set["flows"]) for level in counts] == ["2", "4"]


def test_evenly_spaced_numbers_are_written_by_first_step_and_count():
    generated = levels(values={"first": 1, "step": 0.1, "count": 4}, set="delay_s")
    assert [level.set["delay_s"] for level in generated] == [1.0, 1.1, 1.2, 1.3]
    loss = {"kind": "listed", "flow": "f", "data_packets": {"first": 3, "step": 5.0, "count": 3}}
    assert ListedLoss.model_validate(loss).data_packets == [3, 8, 13]
    loss["data_packets"] = {"first": 3, "step": 5, "cont": 3}
    with pytest.raises(ValidationError, match=r"cont: .*nearest: count"):
        ListedLoss.model_validate(loss)


def test_words_for_readers_do_not_change_the_hash_of_a_study(world):
    def decisive(**changes):
        return world.study(claims=[CLAIM | changes]).decisive(include={"claims", "experiments"})

    assert decisive(reading="In other words.") == decisive()
    test = {"kind": "value", "of": quantity(), "expect": {"at_least": 1.0}}
    assert decisive(test=test) != decisive()


def test_a_repeated_claim_is_not_counted(world):
    def claims_with(repeated):
        more = [{"id": "c03", "repeats": "c01"}, {"id": "c04", "repeats": repeated}]
        return world.study(claims=[CLAIM, *(CLAIM | changes for changes in more)]).claims

    assert [claim.is_counted for claim in claims_with("c01")] == [True, False, False]
    for wrong in ("c09", "c03", "c04"):
        with pytest.raises(ValidationError, match=f"c04: repeats '{wrong}'"):
            claims_with(wrong)


def test_a_quantity_covers_the_points_of_its_levels_listed_or_not():
    def over(keys):
        return Quantity(experiment="e", metric="m", where={"x": keys, "y": "c"})

    single, two = over("a"), over(["a", "b"])
    assert single == over(["a"])
    assert single.model_dump(mode="json")["where"] == {"x": "a", "y": "c"}
    assert two.model_dump(mode="json")["where"]["x"] == ["a", "b"]
    assert Quantity.model_validate_json(two.model_dump_json()) == two
    assert covers(two.where, {"x": "a", "y": "c", "z": "d"}) and covers({}, {"x": "a"})
    assert not covers(two.where, {"x": "d", "y": "c"}) and not covers(two.where, {"x": "a"})
