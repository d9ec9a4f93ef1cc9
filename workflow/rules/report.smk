# Report: the notebooks, which papermill executes on each study's results, and the pages.


rule execute_notebook:
    input:
        notebook=ancient(f"{PATHS.notebooks}/{{kind}}.ipynb"),
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        published=ancient(f"{PATHS.published}/{{study}}.csv"),
        design=rules.design_study.output.design,
        scenarios=rules.design_study.output.scenarios,
        flows=rules.collect_results.output.flows,
        series=rules.collect_results.output.series,
        verdicts=rules.evaluate_study.output.verdicts,
        own=rules.judge_self_consistency.output.own,
        program=PIPE.live_program,
        traces=lambda wildcards: (
            rules.compare_traces.output if wildcards.kind == "trace_comparison" else []
        ),
    output:
        notebook=f"{PATHS.executed}/{{study}}.{{kind}}.ipynb",
    log:
        f"{PATHS.data}/logs/execute_notebook/{{study}}.{{kind}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/execute_notebook/{{study}}.{{kind}}.tsv"
    localrule: True
    params:
        code=code_of("report", "execute_notebook"),
        sources=lambda wildcards: study_hash(wildcards.study),
        notebook=lambda wildcards: content_hash(
            f"{PATHS.notebooks}/{wildcards.kind}.ipynb"
        ),
        live=PIPE.runs_live,
    script:
        "../scripts/execute_notebook.py"


# Lectures of no single study. They also read measurements and templates that are committed.
LECTURE_TABLES = [
    *sorted(Path("data").glob("*.csv")),
    *sorted(PATHS.published.glob("*.csv")),
    *sorted(Path("configs/templates").glob("*")),
]
lecture_results = lambda wildcards: expand(
    [
        *rules.design_study.output,
        *rules.collect_results.output,
        *rules.evaluate_study.output,
        *rules.judge_self_consistency.output,
    ],
    study=studies_of_lecture(wildcards.lecture, PIPE.studies),
)


rule execute_lecture:
    input:
        notebook=ancient(f"{PATHS.notebooks}/{{lecture}}.ipynb"),
        tables=ancient(LECTURE_TABLES),
        results=lecture_results,
        counts=lambda wildcards: (
            rules.merge_evaluations.output if wildcards.lecture == START_HERE else []
        ),
        program=PIPE.live_program,
    output:
        notebook=f"{PATHS.executed}/{{lecture}}.ipynb",
    log:
        f"{PATHS.data}/logs/execute_notebook/{{lecture}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/execute_notebook/{{lecture}}.tsv"
    localrule: True
    params:
        code=code_of("report", "execute_notebook"),
        sources=content_hash(*LECTURE_TABLES),
        notebook=lambda wildcards: content_hash(
            f"{PATHS.notebooks}/{wildcards.lecture}.ipynb"
        ),
        live=PIPE.runs_live,
    script:
        "../scripts/execute_notebook.py"


# Every table that the report reads.
TABLES = [
    *expand(rules.judge_self_consistency.output.own, study=PIPE.studies),
    *rules.merge_evaluations.output,
    *rules.compare_engines.output,
    *(rules.compare_traces.output if PIPE.traced else []),
    *expand(
        [
            *rules.design_study.output,
            *rules.collect_results.output,
            *rules.evaluate_study.output,
        ],
        study=PIPE.studies,
    ),
]


# Documents that only pages read; a test project may lack that of changes.
SHOWN_DOCUMENTS = [
    *sorted(Path("configs/studies").glob("*/findings.yaml")),
    *Path("configs").glob("changes.yaml"),
]


rule write_provenance:
    input:
        tables=TABLES,
        # It also records their times.
        notebooks=PIPE.executed(),
        usage=expand(rules.simulate_batch.output.usage, batch=PLAN.batches),
    output:
        provenance=f"{PATHS.data}/provenance.json",
    log:
        f"{PATHS.data}/logs/write_provenance.log",
    benchmark:
        f"{PATHS.data}/benchmarks/write_provenance.tsv"
    localrule: True
    params:
        code=code_of("report", "write_provenance"),
        settings=PIPE.settings,
    script:
        "../scripts/write_provenance.py"


rule render_report:
    input:
        tables=TABLES,
        provenance=rules.write_provenance.output.provenance,
        notebooks=PIPE.executed(),
        documents=ancient(SHOWN_DOCUMENTS),
    output:
        index=f"{PATHS.html}/index.html",
    log:
        f"{PATHS.data}/logs/render_report.log",
    benchmark:
        f"{PATHS.data}/benchmarks/render_report.tsv"
    localrule: True
    # Pages are rendered in parallel.
    threads: workflow.cores
    params:
        code=code_of("report", "render_report"),
        documents=content_hash(*SHOWN_DOCUMENTS),
        shown=PIPE.shown,
    script:
        "../scripts/render_report.py"
