# Agreement: the same claims and cells on every engine, and what differs where they do not agree.


rule compare_engines:
    input:
        differences="configs/engine_differences.yaml",
        studies=PIPE.study_files(*PIPE.studies),
        design=expand(rules.design_study.output.design, study=PIPE.studies),
        scenarios=expand(rules.design_study.output.scenarios, study=PIPE.studies),
        flows=expand(rules.collect_results.output.flows, study=PIPE.studies),
        features=expand(rules.collect_results.output.features, study=PIPE.studies),
        verdicts=expand(rules.evaluate_study.output.verdicts, study=PIPE.studies),
    output:
        rates=f"{PATHS.data}/agreement.csv",
        pairs=f"{PATHS.data}/agreement_pairs.csv",
        contrasts=f"{PATHS.data}/agreement_contrasts.csv",
    log:
        f"{PATHS.data}/logs/compare_engines.log",
    benchmark:
        f"{PATHS.data}/benchmarks/compare_engines.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        studies=PIPE.studies,
        data=PATHS.data,
    shell:
        'echo "comparing the engines" >&2; '
        "replicate step agreement {params.studies} --data {params.data} > {log} 2>&1"
        " || {{ tail -n 20 {log} >&2; exit 1; }}"
