# Sensitivity: the studies' claims and numbers over the plausible settings, and why they differ.
# Not part of the report's rules: `make explain` asks for it, the report shows it if it is there.


SENSITIVITY = f"{PATHS.sensitivity}/{{study}}"
ROBUSTNESS = ("claims", "cells", "effects", "spread")
EXPLAINED = ("explanations", "explained_cells")
# What is explored is one long job each: most runs follow from those before, and all are in the store.
EXPLORE = (
    "replicate step explore run {params.what} --folder {params.folder} --engine {params.engine}"
    " {params.launch} --store {params.store}"
    " --memory-limit-bytes {params.memory} --time-limit-s {params.time} 2> >(tee {log} >&2)"
)
LIMITS = {
    "memory": PIPE.config.memory_limit_bytes,
    "time": PIPE.config.time_limit_s,
}


ruleorder: execute_sensitivity_notebook > execute_notebook


rule explore_study:
    input:
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        published=f"{PATHS.published}/{{study}}.csv",
        settings="configs/sensitivity.yaml",
        program=lambda wildcards: PIPE.program_of(PIPE.explored_on(wildcards.study)),
    output:
        points=f"{SENSITIVITY}/points.csv",
        judged=[
            f"{SENSITIVITY}/{part}.parquet" for part in ("claims", "cells", "spread")
        ],
    log:
        f"{PATHS.data}/logs/explore_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explore_study/{{study}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        **LIMITS,
        code=PIPE.code.judge,
        what="robustness {study}",
        launch=lambda wildcards: PIPE.launch_of(PIPE.explored_on(wildcards.study)),
        engine=lambda wildcards: PIPE.explored_on(wildcards.study),
        fingerprint=lambda wildcards: PIPE.fingerprint(
            PIPE.explored_on(wildcards.study)
        ),
        folder=lambda wildcards, output: Path(output.points).parent,
        store=lambda wildcards: PIPE.store_of(PIPE.explored_on(wildcards.study)),
    shell:
        EXPLORE


rule measure_robustness:
    input:
        points=rules.explore_study.output.points,
        judged=rules.explore_study.output.judged,
        settings="configs/sensitivity.yaml",
    output:
        tables=[f"{SENSITIVITY}/{part}.csv" for part in ROBUSTNESS],
        made_from=f"{SENSITIVITY}/made_from.json",
    log:
        f"{PATHS.data}/logs/measure_robustness/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/measure_robustness/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        folder=lambda wildcards, output: Path(output.made_from).parent,
        data=PATHS.data,
        # Compared with the tier's verdicts, if there are any.
        tier=PIPE.content(PATHS.data / "claims.csv", PATHS.data / "cells.csv"),
    shell:
        "replicate step explore measure {wildcards.study} --folder {params.folder}"
        " --data {params.data} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"


# The kernels that explanations ask for beside the report's own.
rule build_explanation_kernels:
    input:
        sources=[p.relative_to(REPO) for p in ENGINES["linux"].program_sources(REPO)],
    output:
        program=PATHS.explanation_kernels(LINUX_FINGERPRINT),
    log:
        f"{PATHS.data}/logs/build_explanation_kernels/{{digest}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/build_explanation_kernels/{{digest}}.tsv"
    localrule: True
    threads: workflow.cores
    params:
        build=lambda wildcards, output: Path(output.program).parent,
        cache=linux_cache(Path()),
        hz=",".join(map(str, PIPE.sensitivity.explanation.timer_hz)),
    shell:
        BUILD_KERNELS


rule explain_study:
    input:
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        published=f"{PATHS.published}/{{study}}.csv",
        causes="configs/explanations/{study}.yaml",
        settings="configs/sensitivity.yaml",
        program=lambda wildcards: PIPE.explaining(wildcards.study)[0],
    output:
        explanation=f"{SENSITIVITY}/explanation.json",
        tables=[f"{SENSITIVITY}/{part}.csv" for part in EXPLAINED],
        tried=f"{SENSITIVITY}/tried.parquet",
        scenarios=f"{SENSITIVITY}/explained_scenarios.json",
    log:
        f"{PATHS.data}/logs/explain_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explain_study/{{study}}.tsv"
    priority: 100
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        **LIMITS,
        code=PIPE.code.judge,
        what="explanation {study}",
        traces=lambda wildcards: (PIPE.traces if wildcards.study in PIPE.traced else ""),
        launch=lambda wildcards: PIPE.explaining(wildcards.study)[1],
        engine=lambda wildcards: PIPE.explained_on(wildcards.study),
        fingerprint=lambda wildcards: PIPE.fingerprint(
            PIPE.explained_on(wildcards.study)
        ),
        folder=lambda wildcards, output: Path(output.explanation).parent,
        store=lambda wildcards: PIPE.store_of(PIPE.explained_on(wildcards.study)),
    shell:
        EXPLORE


rule merge_sensitivity:
    input:
        made_from=expand(rules.measure_robustness.output.made_from, study=PIPE.studies),
        explained=expand(rules.explain_study.output.tables, study=PIPE.explained),
    output:
        robustness=[
            f"{PATHS.sensitivity}/{part}.csv" for part in ("points", *ROBUSTNESS)
        ],
        explained=[f"{PATHS.data}/{part}.csv" for part in EXPLAINED],
    log:
        f"{PATHS.data}/logs/merge_sensitivity.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_sensitivity.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        studies=PIPE.studies,
        explained=PIPE.explained,
        data=PATHS.data,
    shell:
        "replicate step explore merge {params.studies} --explained '{params.explained}'"
        " --data {params.data} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule execute_sensitivity_notebook:
    input:
        notebook=f"{PATHS.notebooks}/sensitivity.ipynb",
        made_from=rules.measure_robustness.output.made_from,
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
        code=PIPE.code.report,
        data=PATHS.data,
        live="--live" if PIPE.runs_live else "--no-live",
    shell:
        "replicate step notebook {input.notebook} --study {wildcards.study} --data {params.data}"
        " {params.live} --output {output.notebook} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"


rule explain:
    input:
        rules.merge_sensitivity.output,
        # It tells of an explanation: a study without causes has none.
        expand(rules.execute_sensitivity_notebook.output.notebook, study=PIPE.explained),
    localrule: True
