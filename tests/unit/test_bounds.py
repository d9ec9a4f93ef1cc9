"""Documents are bounded, and what their templates make is counted before it is made."""

import json

import pytest
from replication.plan.config import Replicates, Tier
from replication.plan.design import design_study
from replication.study.errors import InputError
from replication.study.files import read_model, read_yaml
from replication.study.study import Study
from replication.study.template import Resolver, TemplateError, expand, resolve

from tests.unit.conftest import study_document

TIER = Tier(id="t", title="t", replicates=[Replicates(count=1)], levels="all", batch_cost_s=1.0)


def read(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path)


# -- YAML -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "010",
        "0o10",
        "0x10",
        "0b1",
        "1:30",
        "1_000",
        ".inf",
        ".nan",
        "2017-08-01",
        "1.5.0",
        "=",
        "0e0.1",
    ],
)
def test_what_is_no_json_value_is_text(tmp_path, text):
    assert read(tmp_path, f"x: {text}\n") == {"x": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e6", 1e6),
        ("2.0e6", 2e6),
        ("1E-3", 1e-3),
        ("0.10", 0.1),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_json_values_are_read_as_such(tmp_path, text, value):
    found = read(tmp_path, f"x: {text}\n")["x"]
    assert found == value and type(found) is type(value)
    assert read(tmp_path, f"x: '{text}'\n") == {"x": text}


@pytest.mark.parametrize("duration", ["yes", "true", "010", "1:30", "'10'", ".inf", "null", "[1]"])
def test_what_is_no_number_is_no_duration(tmp_path, duration):
    document = study_document()
    del document["parameters"]["duration_s"]
    text = json.dumps(document).replace('"$duration_s"', duration)
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="duration_s"):
        design_study(read_model(path, Study), TIER, ["ns3"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "line 1: brackets or indents deeper than 50"),
        ("x: " + "{a: " * 60 + "1" + "}" * 60, "line 1: brackets or indents deeper than 50"),
        ("\n".join(f"{'  ' * i}a:" for i in range(60)), "line 51: brackets or indents deeper"),
        ("x: " + "9" * 401, "line 1: a number of 401 characters, more than 40"),
        ("x: 1e999", "line 1: number 1e999 is too large"),
        ("a: 1\n" + "#" * 2**20, "is larger than 1048576 bytes"),
        ("a: &a [*a]", r"line 1: \*a stands for nothing written before"),
        ("a: 1\n---\nb: 2", "line 2: holds a second document"),
        ("a: !!python/name:os.system x", "line 1: tag .* is not read"),
        ("a: !!int '3'", "line 1: tag .* is not read"),
        ("1: x", "line 1: key 1 is not text"),
        ("? [a]\n: x", "line 1: key a mapping or list is not text"),
        ("a: {<<: 5}", "line 1: << takes a mapping"),
        ("a: &a {x: 1}\nb: {<<: *a, <<: *a}", "line 2: key '<<' is given twice"),
    ],
)
def test_a_document_beyond_its_bounds_is_refused_by_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert "x.yaml: " in str(caught.value) and str(caught.value).isprintable()


def test_aliases_count_as_all_that_they_stand_for(tmp_path):
    lists = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    with pytest.raises(InputError, match=r"line \d+: \d+ values, more than 200000"):
        read(tmp_path, "\n".join(["a0: &a0 [1, 2]", *lists]))
    merges = [
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}], k{i}: 1}}" for i in range(1, 30)
    ]
    with pytest.raises(InputError, match=r"line \d+: \d+ values, more than 200000"):
        read(tmp_path, "\n".join(["a0: &a0 {x: 1}", *merges]))


def test_many_keys_are_read_and_one_given_twice_is_found(tmp_path):
    keys = [f"k{i}: 1" for i in range(40_000)]
    assert len(read(tmp_path, "\n".join(keys))) == 40_000
    with pytest.raises(InputError, match="line 40001: key 'k7' is given twice"):
        read(tmp_path, "\n".join([*keys, "k7: 2"]))


# -- templates ------------------------------------------------------------------------------------


def chain(length, text):
    """Return parameters of which each but the last is `text` with the next one's name."""
    links = {f"p{i}": text.format(f"$p{i + 1}") for i in range(length)}
    return links | {f"p{length}": 1}


def test_a_long_chain_of_references_is_refused():
    assert resolve("$p0", chain(40, "{0}")) == 1
    with pytest.raises(TemplateError, match=r"deeper than 50 steps: \$p0 -> \$p1"):
        resolve("$p0", chain(3000, "{0}"))


def test_a_reference_is_resolved_once_however_often_it_is_made():
    class Counted(dict):
        reads = 0

        def __getitem__(self, name):
            self.reads += 1
            return super().__getitem__(name)

    parameters = Counted(chain(40, "{0} * {0}"))
    assert Resolver(parameters).resolve("$p0") == 1
    assert parameters.reads == 41


@pytest.mark.parametrize(
    "parameters",
    [
        {**chain(40, "{0} * {0}"), "p40": 10},
        {**chain(40, "{0} * {0}"), "p40": 1e9},
        {"p0": "$big * 2", "big": 10**400},
        {"p0": "$big * 2", "big": float("inf")},
        {"p0": "$big * 2", "big": float("nan")},
        {"p0": "$one * 1e300", "one": 1},
    ],
)
def test_a_product_beyond_every_quantity_is_refused(parameters):
    with pytest.raises(TemplateError, match=r"is beyond 1e\+18: no quantity is so large"):
        resolve("$p0", parameters)


@pytest.mark.parametrize("factor", ["nan", "inf", "1_0", "²", "0x1", "1e999", "9" * 50])
def test_a_factor_is_a_plain_number(factor):
    with pytest.raises(InputError):
        resolve(f"$a * {factor}", {"a": 1})


def test_what_references_make_is_counted():
    doubled = {f"p{i}": [f"$p{i + 1}", f"$p{i + 1}"] for i in range(20)} | {"p20": 1}
    with pytest.raises(TemplateError, match=r"make \d+ values of one, more than 200000"):
        resolve("$p0", doubled)
    with pytest.raises(TemplateError, match=r"the templates make 20\d+ values of one scenario"):
        expand([{"id": "n{i}", "repeat": 10_000, "x": ["$list"]}], {"list": list(range(50))})
    nested = {f"p{i}": [[f"$p{i + 1}"]] for i in range(12)} | {"p12": 1}
    deep = "$p0"
    for _ in range(30):
        deep = [deep]
    with pytest.raises(TemplateError, match=r"\$p0 nests brackets deeper than 50"):
        resolve(["$p0", deep], nested)


@pytest.mark.parametrize("jitter", [1e308, -1.0, True, "1", float("nan"), [1]])
def test_a_jitter_is_a_time(jitter):
    document = study_document()
    document["experiments"][0]["flows"][0]["start_jitter_s"] = jitter
    # The model itself refuses what is not finite.
    with pytest.raises(ValueError, match=r"start_jitter_s"):
        design_study(Study.model_validate(document), TIER, ["ns3"])


def test_points_are_counted_before_they_are_made():
    document = study_document()
    factor = document["experiments"][0]["factors"][1]
    levels = [{"key": f"k{i}", "label": "l", "set": {}} for i in range(1000)]
    document["experiments"][0]["factors"] += [
        {**factor, "id": f"f{i}", "levels": levels} for i in range(3)
    ]
    with pytest.raises(ValueError, match="sweep: its factors make 9000000000 points"):
        Study.model_validate(document)


def test_a_design_is_counted_before_its_scenarios_are_made():
    document = study_document()
    flows = document["experiments"][0]["flows"]
    flows[0] |= {"id": "tcp{i}", "repeat": 10_000}
    tier = TIER.model_copy(update={"replicates": [Replicates(count=1000)]})
    with pytest.raises(InputError, match=r"values in its scenarios, more than 5000000"):
        design_study(Study.model_validate(document), tier, ["ns3"])


def test_numbers_without_end_are_refused_by_the_models():
    for wrong in (10**400, float("inf"), True, "10"):
        document = study_document()
        document["experiments"][0]["sampling_interval_s"] = wrong
        with pytest.raises(ValueError, match="sampling_interval_s"):
            design_study(Study.model_validate(document), TIER, ["ns3"])
