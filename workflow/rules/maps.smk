# Maps: where the papers' sentences hold, over buffers, delays, rates and what else a map varies.
# Not part of the report's rules: `make maps` asks for it, the report shows it if it is there.


MAP = f"{PATHS.maps}/{{map}}"
TODAY = f"{PATHS.maps}/today/{{study}}"


wildcard_constraints:
    map="[a-z0-9][a-z0-9_.-]*",


# Every map on each of its engines that is there, and the studies that are judged on a modern kernel.
maps_to_explore = lambda wildcards: [
    f"{name}/{engine}" for name, engine in maps_or_exit(REPO, PIPE.engines)
]
judged_on_today = lambda wildcards: modern_studies(REPO, PIPE.studies, PIPE.engines)


rule plan_maps:
    input:
        maps=lambda wildcards: sorted(
            {
                f"configs/maps/{name}.yaml"
                for name, _ in maps_or_exit(REPO, PIPE.engines)
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
        today=judged_on_today,
        tier=PIPE.config.tier,
        ns3_version=PIPE.config.ns3_version,
    script:
        "../scripts/plan_maps.py"


rule explore_map:
    input:
        map="configs/maps/{map}.yaml",
        settings="configs/mapping.yaml",
        study=lambda wildcards: PIPE.study_files(load_map(REPO, wildcards.map).study),
        program=lambda wildcards: PIPE.program_of(wildcards.engine),
    output:
        result=f"{MAP}/{{engine}}.json",
        scenarios=f"{MAP}/{{engine}}.scenarios.json",
    log:
        f"{PATHS.data}/logs/explore_map/{{map}}.{{engine}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/explore_map/{{map}}.{{engine}}.tsv"
    resources:
        mem_mb=PIPE.memory_mb,
    params:
        code=PIPE.code.judge,
        tier=PIPE.config.tier,
        machine=lambda wildcards: PIPE.machine(wildcards.engine),
    script:
        "../scripts/explore_map.py"


rule judge_today:
    input:
        today="configs/today.yaml",
        study=lambda wildcards: PIPE.study_files(wildcards.study),
        program=lambda wildcards: PIPE.program_of(load_modern(REPO).engine),
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
        code=PIPE.code.judge,
        tier=PIPE.config.tier,
        machine=lambda wildcards: PIPE.machine(load_modern(REPO).engine),
    script:
        "../scripts/judge_today.py"


rule merge_maps:
    input:
        results=lambda wildcards: [
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
    script:
        "../scripts/merge_maps.py"


rule maps:
    input:
        rules.plan_maps.output.forecast,
        rules.merge_maps.output.table,
    localrule: True
