# Maps: where the papers' sentences hold, over buffers, delays, rates and what else a map varies.
# Not part of the report's rules: `make maps` asks for it, the report shows it if it is there.


MAP = f"{PATHS.maps}/{{map}}"
TODAY = f"{PATHS.maps}/today/{{study}}"


wildcard_constraints:
    map="[a-z0-9][a-z0-9_.-]*",


def maps_to_explore(wildcards):
    """Return every map on each of its engines that is there."""
    return [f"{name}/{engine}" for name, engine in maps_or_exit(REPO, PIPE.engines)]


def judged_on_today(wildcards):
    """Return the studies that are judged on a modern kernel."""
    return studies_of_today(REPO, PIPE.studies, PIPE.engines)


rule plan_maps:
    input:
        maps=lambda wildcards: sorted(
            {
                f"configs/maps/{Path(one).parent}.yaml"
                for one in maps_to_explore(wildcards)
            }
        ),
        settings="configs/mapping.yaml",
        today="configs/today.yaml",
    output:
        forecast=f"{PATHS.maps}/forecast.txt",
    log:
        f"{PATHS.data}/logs/plan_maps.log",
    benchmark:
        f"{PATHS.data}/benchmarks/plan_maps.tsv"
    # Says what all cost before any runs: first of all, and alone. It is no map's input, not as `ancient` either:
    # where it is made anew, Snakemake looks for no other reason to make the maps.
    priority: 1000
    localrule: True
    threads: workflow.cores
    params:
        code=PIPE.code.judge,
        maps=maps_to_explore,
        today=lambda wildcards: [f"--today {s}" for s in judged_on_today(wildcards)],
        tier=PIPE.config.tier,
    shell:
        "replicate step explore forecast {params.maps} {params.today} --tier {params.tier}"
        " 2> {log} | tee {output.forecast} >&2 || {{ cat {log} >&2; exit 1; }}"


rule explore_map:
    input:
        map="configs/maps/{map}.yaml",
        settings="configs/mapping.yaml",
        study=lambda wildcards: PIPE.study_files(load_map(REPO, wildcards.map).study),
        program=lambda wildcards: PIPE.program_of(wildcards.engine),
    output:
        account=f"{MAP}/{{engine}}.json",
        scenarios=f"{MAP}/{{engine}}.scenarios.json",
    log:
        f"{PATHS.data}/logs/explore_map/{{map}}.{{engine}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explore_map/{{map}}.{{engine}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        **LIMITS,
        code=PIPE.code.judge,
        what=f"region {{map}} --tier {PIPE.config.tier}",
        launch=lambda wildcards: PIPE.launch_with_kernel(wildcards.engine),
        engine="{engine}",
        fingerprint=lambda wildcards: PIPE.fingerprint(wildcards.engine),
        folder=lambda wildcards, output: Path(output.account).parent,
        store=lambda wildcards: PIPE.store_of(wildcards.engine),
    shell:
        EXPLORE


rule judge_today:
    input:
        today="configs/today.yaml",
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        program=lambda wildcards: PIPE.program_of(load_today(REPO).engine),
    output:
        claims=f"{TODAY}.claims.json",
        scenarios=f"{TODAY}.claims.scenarios.json",
    log:
        f"{PATHS.data}/logs/judge_today/{{study}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/judge_today/{{study}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        **LIMITS,
        code=PIPE.code.judge,
        what=f"today {{study}} --tier {PIPE.config.tier}",
        launch=lambda wildcards: PIPE.launch_with_kernel(load_today(REPO).engine),
        engine=lambda wildcards: load_today(REPO).engine,
        fingerprint=lambda wildcards: PIPE.fingerprint(load_today(REPO).engine),
        folder=lambda wildcards, output: Path(output.claims).parent,
        store=lambda wildcards: PIPE.store_of(load_today(REPO).engine),
    shell:
        EXPLORE


rule merge_maps:
    input:
        accounts=lambda wildcards: [
            f"{PATHS.maps}/{one}.json" for one in maps_to_explore(wildcards)
        ],
        today=lambda wildcards: expand(
            rules.judge_today.output.claims, study=judged_on_today(wildcards)
        ),
    output:
        table=f"{PATHS.data}/maps.csv",
    log:
        f"{PATHS.data}/logs/merge_maps.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_maps.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        data=PATHS.data,
    shell:
        "replicate step explore merge-regions {input.accounts} --data {params.data}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule maps:
    input:
        rules.plan_maps.output.forecast,
        rules.merge_maps.output.table,
    localrule: True
