# The version ladder: tier quick of some studies on every version of ns-3 that is available, each in
# a data folder of its own.


rule compare_versions:
    input:
        cells=lambda wildcards: expand(
            rules.evaluate_study.output.cells,
            data=PLANS.ladder.folders,
            study=LADDER_STUDIES,
        ),
        claims=lambda wildcards: expand(
            rules.evaluate_study.output.claims,
            data=PLANS.ladder.folders,
            study=LADDER_STUDIES,
        ),
    output:
        table=f"{PATHS.data}/ladder.csv",
        stamp=f"{PATHS.data}/ladder.json",
    log:
        f"{PATHS.data}/logs/compare_versions.log",
    benchmark:
        f"{PATHS.ladder}/benchmarks/compare_versions.tsv"
    localrule: True
    params:
        code=PIPE.code("compare.ladder"),
        versions=lambda wildcards: list(PLANS.ladder.pipelines),
        data=PATHS.data,
    shell:
        'echo "comparing the versions" >&2; '
        "replicate step ladder {params.versions} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}; cat {log} >&2"


rule ladder:
    input:
        rules.compare_versions.output.table,
    localrule: True
