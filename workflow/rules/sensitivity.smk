# Sensitivity: the studies' claims and numbers over the plausible settings, and why they differ.
# Not part of the report's rules: `make sensitivity` asks for it, the report shows it if it is there.


SENSITIVITY = f"{PATHS.sensitivity}/{{study}}"
JOBS = range(PIPE.sensitivity.jobs)


wildcard_constraints:
    job="[0-9]+",


ruleorder: execute_sensitivity_notebook > execute_notebook


rule design_sensitivity:
    input:
        study="configs/studies/{study}.yaml",
        settings="configs/sensitivity.yaml",
    output:
        design=f"{SENSITIVITY}/design.json",
        batches=[f"{SENSITIVITY}/batches/{job}.json" for job in JOBS],
    log:
        f"{PATHS.data}/logs/design_sensitivity/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/design_sensitivity/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        folder=lambda wildcards, output: Path(output.design).parent,
        engine=lambda wildcards: PIPE.explored_on(wildcards.study),
    shell:
        'echo "designing the sensitivity of {wildcards.study}" >&2; '
        "replicate step sensitivity design {wildcards.study} --folder {params.folder}"
        " --engine {params.engine} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule plan_sensitivity:
    input:
        designs=expand(rules.design_sensitivity.output.design, study=PIPE.studies),
    output:
        goal=f"{PATHS.sensitivity}/goal.json",
    log:
        f"{PATHS.data}/logs/plan_sensitivity.log",
    benchmark:
        f"{PATHS.data}/benchmarks/plan_sensitivity.tsv"
    # For the jobs' progress lines: first of what is ready, and no job's input (see `plan_maps`).
    priority: 1000
    localrule: True
    params:
        folders=[SENSITIVITY.format(study=study) for study in PIPE.studies],
        stores=",".join(str(PIPE.store_of(PIPE.explored_on(study))) for study in PIPE.studies),
    shell:
        "replicate step sensitivity plan {params.folders} --stores {params.stores} --goal {output.goal}"
        " 2>&1 | tee {log} >&2"


rule simulate_sensitivity:
    input:
        batch=f"{SENSITIVITY}/batches/{{job}}.json",
        program=lambda wildcards: PIPE.program_of(PIPE.explored_on(wildcards.study)),
    output:
        usage=f"{SENSITIVITY}/usage/{{job}}.json",
    log:
        f"{PATHS.data}/logs/simulate_sensitivity/{{study}}.{{job}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/simulate_sensitivity/{{study}}.{{job}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=PIPE.code.simulate,
        launch=lambda wildcards: PIPE.launch_of(PIPE.explored_on(wildcards.study)),
        fingerprint=lambda wildcards: PIPE.fingerprint(
            PIPE.explored_on(wildcards.study)
        ),
        store=lambda wildcards: PIPE.store_of(PIPE.explored_on(wildcards.study)),
        memory=PIPE.config.memory_limit_bytes,
        time=PIPE.config.time_limit_s,
        goal=rules.plan_sensitivity.output.goal,
    shell:
        "replicate step simulate --batch {input.batch} {params.launch}"
        " --fingerprint {params.fingerprint}"
        " --store {params.store} --usage {output.usage} --goal {params.goal}"
        " --memory-limit-bytes {params.memory} --time-limit-s {params.time} 2> >(tee {log} >&2)"


rule judge_sensitivity:
    input:
        study="configs/studies/{study}.yaml",
        published=f"{PATHS.published}/{{study}}.csv",
        design=rules.design_sensitivity.output.design,
        usage=[f"{SENSITIVITY}/usage/{job}.json" for job in JOBS],
    output:
        claims=f"{SENSITIVITY}/claims.parquet",
        cells=f"{SENSITIVITY}/cells.parquet",
        spread=f"{SENSITIVITY}/spread.parquet",
    log:
        f"{PATHS.data}/logs/judge_sensitivity/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/judge_sensitivity/{{study}}.tsv"
    # As soon as a study's runs are there, so that no study waits for the last one's runs.
    priority: 50
    localrule: True
    params:
        code=PIPE.code.judge,
        folder=lambda wildcards, output: Path(output.claims).parent,
        store=lambda wildcards: PIPE.store_of(PIPE.explored_on(wildcards.study)),
    shell:
        'echo "judging {wildcards.study} at every design point" >&2; '
        "replicate step sensitivity judge {wildcards.study} --folder {params.folder}"
        " --store {params.store} > {log} 2>&1 || {{ tail -n 20 {log} >&2; exit 1; }}"


rule measure_sensitivity:
    input:
        claims=rules.judge_sensitivity.output.claims,
        cells=rules.judge_sensitivity.output.cells,
        spread=rules.judge_sensitivity.output.spread,
        settings="configs/sensitivity.yaml",
    output:
        tables=[
            f"{SENSITIVITY}/{part}.csv"
            for part in ("points", "claims", "cells", "effects", "spread")
        ],
        made_from=f"{SENSITIVITY}/made_from.json",
    log:
        f"{PATHS.data}/logs/measure_sensitivity/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/measure_sensitivity/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        folder=lambda wildcards, output: Path(output.made_from).parent,
        data=PATHS.data,
        # The tier's verdicts stand beside those at the reduced scale, if there are any.
        tier=PIPE.content(PATHS.data / "claims.csv", PATHS.data / "cells.csv"),
    shell:
        "replicate step sensitivity measure {wildcards.study} --folder {params.folder}"
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


# The best explanation of a study's gaps: set-ups follow from one another, so it is one long job.
rule explain_study:
    input:
        study="configs/studies/{study}.yaml",
        published=f"{PATHS.published}/{{study}}.csv",
        atoms="configs/explanations/{study}.yaml",
        settings="configs/sensitivity.yaml",
        program=lambda wildcards: PIPE.explaining(wildcards.study)[0],
    output:
        explanation=f"{SENSITIVITY}/explanation.json",
        tables=[
            f"{SENSITIVITY}/{part}.csv" for part in ("explanations", "explained_cells")
        ],
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
        code=PIPE.code.judge,
        traces=lambda wildcards: (PIPE.traces if wildcards.study in PIPE.traced else ""),
        launch=lambda wildcards: PIPE.explaining(wildcards.study)[1],
        engine=lambda wildcards: PIPE.explained_on(wildcards.study),
        fingerprint=lambda wildcards: PIPE.fingerprint(
            PIPE.explained_on(wildcards.study)
        ),
        folder=lambda wildcards, output: Path(output.explanation).parent,
        store=lambda wildcards: PIPE.store_of(PIPE.explained_on(wildcards.study)),
        memory=PIPE.config.memory_limit_bytes,
        time=PIPE.config.time_limit_s,
    shell:
        "replicate step sensitivity explain {wildcards.study} --folder {params.folder}"
        " --engine {params.engine} {params.launch} --store {params.store}"
        " --memory-limit-bytes {params.memory} --time-limit-s {params.time} 2> >(tee {log} >&2)"


rule merge_explanations:
    input:
        tables=expand(rules.explain_study.output.tables, study=PIPE.explained),
    output:
        tables=[
            f"{PATHS.data}/{part}.csv" for part in ("explanations", "explained_cells")
        ],
    log:
        f"{PATHS.data}/logs/merge_explanations.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_explanations.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        folders=[SENSITIVITY.format(study=study) for study in PIPE.explained],
        data=PATHS.data,
    shell:
        "replicate step sensitivity merge-explanations {params.folders} --data {params.data}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule merge_sensitivity:
    input:
        made_from=expand(rules.measure_sensitivity.output.made_from, study=PIPE.studies),
    output:
        robustness=[
            f"{PATHS.sensitivity}/{part}.csv"
            for part in ("points", "claims", "cells", "effects", "spread")
        ],
    log:
        f"{PATHS.data}/logs/merge_sensitivity.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_sensitivity.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        folders=[SENSITIVITY.format(study=study) for study in PIPE.studies],
        sensitivity=PATHS.sensitivity,
    shell:
        "replicate step sensitivity merge {params.folders} --sensitivity {params.sensitivity}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule execute_sensitivity_notebook:
    input:
        notebook=f"{PATHS.notebooks}/sensitivity.ipynb",
        made_from=rules.measure_sensitivity.output.made_from,
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


rule sensitivity:
    input:
        rules.plan_sensitivity.output.goal,
        rules.merge_explanations.output.tables,
        rules.merge_sensitivity.output.robustness,
        # It tells of an explanation: a study without atoms has none.
        expand(rules.execute_sensitivity_notebook.output.notebook, study=PIPE.explained),
    localrule: True
