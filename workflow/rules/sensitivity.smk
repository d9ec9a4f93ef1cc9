# Sensitivity: the studies' claims and numbers over all plausible settings, and explanations of the gaps. Not part of the
# report's rules: `make explain` runs them, and the report shows their results if they exist.


SENSITIVITY = f"{PATHS.sensitivity}/{{study}}"
SETTINGS = "configs/sensitivity.yaml"
ROBUSTNESS = ("claims", "effects")
EXPLAINED = ("explanations", "explanation_causes", "explained_cells")


ruleorder: execute_sensitivity_notebook > execute_notebook


rule explore_study:
    input:
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        published=ancient(f"{PATHS.published}/{{study}}.csv"),
        settings=ancient(SETTINGS),
        program=lambda wildcards: START.program_of(PIPE.explored_on(wildcards.study)),
    output:
        points=f"{SENSITIVITY}/points.csv",
        cells=f"{SENSITIVITY}/cells.csv",
        readings=f"{SENSITIVITY}/readings.csv",
        verdicts=f"{SENSITIVITY}/claims.parquet",
    log:
        f"{PATHS.data}/logs/explore_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explore_study/{{study}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        # One long job, since most runs depend on earlier ones; all are in the store.
        code=code_of("judge", "explore_study"),
        sources=lambda wildcards: study_hash(wildcards.study),
        settings=content_hash(SETTINGS),
        machine=lambda wildcards: START.machine(PIPE.explored_on(wildcards.study)),
    script:
        "../scripts/explore_study.py"


rule measure_robustness:
    input:
        points=rules.explore_study.output.points,
        verdicts=rules.explore_study.output.verdicts,
        settings=ancient(SETTINGS),
    output:
        tables=[f"{SENSITIVITY}/{part}.csv" for part in ROBUSTNESS],
        input_hashes=f"{SENSITIVITY}/input_hashes.json",
    log:
        f"{PATHS.data}/logs/measure_robustness/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/measure_robustness/{{study}}.tsv"
    localrule: True
    params:
        code=code_of("judge", "measure_robustness"),
        settings=content_hash(SETTINGS),
        ns3_version=START.config.ns3_version,
        # Verdicts of the tier to compare with, if any.
        tier=content_hash(PATHS.data / "verdicts.parquet"),
    script:
        "../scripts/measure_robustness.py"


rule explain_study:
    input:
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        published=ancient(f"{PATHS.published}/{{study}}.csv"),
        causes=ancient("configs/explanations/{study}.yaml"),
        settings=ancient(SETTINGS),
        program=lambda wildcards: START.program_of(PIPE.explored_on(wildcards.study)),
    output:
        explanation=f"{SENSITIVITY}/explanation.json",
        tables=[f"{SENSITIVITY}/{part}.csv" for part in EXPLAINED],
        scenarios=f"{SENSITIVITY}/explained_scenarios.json",
    log:
        f"{PATHS.data}/logs/explain_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explain_study/{{study}}.tsv"
    priority: 100
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=code_of("judge", "explain_study"),
        sources=lambda wildcards: study_hash(wildcards.study),
        settings=lambda wildcards: content_hash(
            SETTINGS, f"configs/explanations/{wildcards.study}.yaml"
        ),
        machine=lambda wildcards: START.machine(PIPE.explored_on(wildcards.study)),
    script:
        "../scripts/explain_study.py"


rule merge_sensitivity:
    input:
        explained=expand(rules.explain_study.output.tables, study=PIPE.explained),
    output:
        explained=[f"{PATHS.data}/{part}.csv" for part in EXPLAINED],
    log:
        f"{PATHS.data}/logs/merge_sensitivity.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_sensitivity.tsv"
    localrule: True
    params:
        code=code_of("judge", "merge_sensitivity"),
        explained=PIPE.explained,
    script:
        "../scripts/merge_sensitivity.py"


rule execute_sensitivity_notebook:
    input:
        notebook=ancient(f"{PATHS.notebooks}/sensitivity.ipynb"),
        input_hashes=rules.measure_robustness.output.input_hashes,
        explanation=rules.explain_study.output.explanation,
        program=PIPE.live_program,
    output:
        notebook=f"{PATHS.executed}/{{study}}.sensitivity.ipynb",
    log:
        f"{PATHS.data}/logs/execute_notebook/{{study}}.sensitivity.log",
    benchmark:
        f"{PATHS.data}/benchmarks/execute_notebook/{{study}}.sensitivity.tsv"
    localrule: True
    params:
        code=code_of("report", "execute_notebook"),
        notebook=content_hash(f"{PATHS.notebooks}/sensitivity.ipynb"),
        live=PIPE.runs_live,
    script:
        "../scripts/execute_notebook.py"


rule explain:
    input:
        expand(rules.measure_robustness.output.input_hashes, study=PIPE.studies),
        rules.merge_sensitivity.output,
        # The notebook needs an explanation, which a study without causes lacks.
        expand(rules.execute_sensitivity_notebook.output.notebook, study=PIPE.explained),
    localrule: True
