# Evaluate: compare results with published numbers and claims.


DIFFERENCES = "configs/engine_differences.yaml"


rule evaluate_study:
    input:
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        published=ancient(f"{PATHS.published}/{{study}}.csv"),
        design=rules.design_study.output.design,
        scenarios=rules.design_study.output.scenarios,
        flows=rules.collect_results.output.flows,
        features=rules.collect_results.output.features,
    output:
        verdicts=f"{PATHS.data}/evaluation/{{study}}/verdicts.parquet",
        audit=f"{PATHS.data}/evaluation/{{study}}/audit.csv",
    log:
        f"{PATHS.data}/logs/evaluate_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/evaluate_study/{{study}}.tsv"
    localrule: True
    params:
        code=code_of("judge", "evaluate_study"),
        sources=lambda wildcards: study_hash(wildcards.study),
    script:
        "../scripts/evaluate_study.py"


# Apply the claims' tests to the paper's own numbers and traces, without any of our runs.
rule judge_self_consistency:
    input:
        study=lambda wildcards: ancient(study_inputs(wildcards.study)),
        published=ancient(f"{PATHS.published}/{{study}}.csv"),
    output:
        own=f"{PATHS.data}/evaluation/{{study}}/self_consistency.csv",
    log:
        f"{PATHS.data}/logs/judge_self_consistency/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/judge_self_consistency/{{study}}.tsv"
    localrule: True
    params:
        code=code_of("judge", "judge_self_consistency"),
        sources=lambda wildcards: study_hash(wildcards.study),
        # As in compare_traces.
        traces=lambda wildcards: PIPE.traces if wildcards.study in PIPE.traced else "",
    script:
        "../scripts/judge_self_consistency.py"


rule merge_evaluations:
    input:
        design=expand(rules.design_study.output.design, study=PIPE.studies),
        own=expand(rules.judge_self_consistency.output.own, study=PIPE.studies),
        verdicts=expand(rules.evaluate_study.output.verdicts, study=PIPE.studies),
        audit=expand(rules.evaluate_study.output.audit, study=PIPE.studies),
    output:
        verdicts=f"{PATHS.data}/verdicts.parquet",
        cells=f"{PATHS.data}/cells.csv",
        claims=f"{PATHS.data}/claims.csv",
        counts=f"{PATHS.data}/counts.csv",
        own=f"{PATHS.data}/self_consistency.csv",
        audit=f"{PATHS.data}/audit.csv",
    log:
        f"{PATHS.data}/logs/merge_evaluations.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_evaluations.tsv"
    localrule: True
    params:
        code=code_of("judge", "merge_evaluations"),
        studies=PIPE.studies,
    script:
        "../scripts/merge_evaluations.py"


rule compare_engines:
    input:
        differences=ancient(DIFFERENCES),
        studies=ancient(study_inputs(*PIPE.studies)),
        design=expand(rules.design_study.output.design, study=PIPE.studies),
        scenarios=expand(rules.design_study.output.scenarios, study=PIPE.studies),
        flows=expand(rules.collect_results.output.flows, study=PIPE.studies),
        features=expand(rules.collect_results.output.features, study=PIPE.studies),
        verdicts=expand(rules.evaluate_study.output.verdicts, study=PIPE.studies),
    output:
        pairs=f"{PATHS.data}/agreement_pairs.csv",
        contrasts=f"{PATHS.data}/agreement_contrasts.csv",
    log:
        f"{PATHS.data}/logs/compare_engines.log",
    benchmark:
        f"{PATHS.data}/benchmarks/compare_engines.tsv"
    localrule: True
    params:
        code=code_of("judge", "compare_engines"),
        sources=content_hash(DIFFERENCES, *study_inputs(*PIPE.studies)),
        studies=PIPE.studies,
    script:
        "../scripts/compare_engines.py"


# Compare published congestion windows with ours.
rule compare_traces:
    input:
        studies=ancient(study_inputs(*PIPE.traced)),
        published=ancient(expand(f"{PATHS.published}/{{study}}.csv", study=PIPE.traced)),
        design=expand(rules.design_study.output.design, study=PIPE.traced),
        scenarios=expand(rules.design_study.output.scenarios, study=PIPE.traced),
        flows=expand(rules.collect_results.output.flows, study=PIPE.traced),
        # All replicates are needed; collected results have only the series that charts draw.
        series=expand(
            rules.simulate_batch.output.series, batch=PLAN.batch_ids(*PIPE.traced)
        ),
    output:
        comparison=f"{PATHS.data}/trace_comparison.csv",
        nearness=f"{PATHS.data}/trace_nearness.csv",
        samples=f"{PATHS.data}/trace_samples.csv",
        windows=f"{PATHS.data}/trace_windows.parquet",
    log:
        f"{PATHS.data}/logs/compare_traces.log",
    benchmark:
        f"{PATHS.data}/benchmarks/compare_traces.tsv"
    localrule: True
    params:
        code=code_of("judge", "compare_traces"),
        sources=study_hash(*PIPE.traced),
        # The raw traces are not part of the project and may be missing, so the rule depends on their hash.
        traces=PIPE.traces,
        studies=PIPE.traced,
    script:
        "../scripts/compare_traces.py"
