# Design: from a study's YAML to points, scenarios and batches.


rule design_study:
    input:
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        tier=f"configs/tiers/{PIPE.config.tier}.yaml",
    output:
        design=f"{PATHS.data}/design/{{study}}.csv",
        scenarios=f"{PATHS.data}/design/scenarios/{{study}}.json",
    log:
        f"{PATHS.data}/logs/design_study/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/design_study/{{study}}.tsv"
    localrule: True
    params:
        code=PIPE.code.simulate,
        # What the batches are named by is in it.
        selection=PIPE.selection,
        data=PATHS.data,
    shell:
        'echo "designing {wildcards.study}" >&2; '
        "replicate step design {wildcards.study} {params.selection}"
        " --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"
