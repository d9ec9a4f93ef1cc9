# Maps: where the papers' sentences hold, over buffers, delays, rates and what else a map varies.
# Not part of the report's rules: `make maps` asks for it, the report shows it if it is there.


MAP = f"{PATHS.maps}/{{map}}"
TODAY = f"{PATHS.maps}/today/{{study}}"


wildcard_constraints:
    map="[a-z0-9][a-z0-9_.-]*",


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
        maps=lambda wildcards: [
            f"{name}/{engine}" for name, engine in maps_or_exit(REPO, PIPE.engines)
        ],
        today=lambda wildcards: [
            f"--today {study}"
            for study in studies_of_today(REPO, PIPE.studies, PIPE.engines)
        ],
        tier=PIPE.config.tier,
    shell:
        "replicate step maps plan {params.maps} {params.today} --tier {params.tier}"
        " 2> {log} | tee {output.forecast} >&2 || {{ cat {log} >&2; exit 1; }}"


# A point follows from those before it, so a map on an engine is one long job.
rule explore_map:
    input:
        map="configs/maps/{map}.yaml",
        settings="configs/mapping.yaml",
        study=lambda wildcards: f"configs/studies/{load_map(REPO, wildcards.map).study}.yaml",
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
        code=PIPE.code.judge,
        launch=lambda wildcards: PIPE.launch_of(wildcards.engine),
        # The kernel of the report's own runs is the only one there.
        timers=lambda wildcards: "--timers 250" if wildcards.engine == "linux" else "",
        fingerprint=lambda wildcards: PIPE.fingerprint(wildcards.engine),
        folder=lambda wildcards, output: Path(output.account).parent,
        store=lambda wildcards: PIPE.store_of(wildcards.engine),
        tier=PIPE.config.tier,
        memory=PIPE.config.memory_limit_bytes,
        time=PIPE.config.time_limit_s,
    shell:
        "replicate step maps explore {wildcards.map} --engine {wildcards.engine} {params.launch}"
        " {params.timers} --tier {params.tier} --folder {params.folder} --store {params.store}"
        " --memory-limit-bytes {params.memory} --time-limit-s {params.time} 2> >(tee {log} >&2)"


rule judge_today:
    input:
        today="configs/today.yaml",
        study="configs/studies/{study}.yaml",
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
        code=PIPE.code.judge,
        launch=lambda wildcards: PIPE.launch_of(load_today(REPO).engine),
        fingerprint=lambda wildcards: PIPE.fingerprint(load_today(REPO).engine),
        folder=lambda wildcards, output: Path(output.claims).parent,
        store=lambda wildcards: PIPE.store_of(load_today(REPO).engine),
        tier=PIPE.config.tier,
        memory=PIPE.config.memory_limit_bytes,
        time=PIPE.config.time_limit_s,
    shell:
        "replicate step maps today {wildcards.study} {params.launch} --timers 250"
        " --tier {params.tier} --folder {params.folder} --store {params.store}"
        " --memory-limit-bytes {params.memory} --time-limit-s {params.time} 2> >(tee {log} >&2)"


rule merge_maps:
    input:
        accounts=lambda wildcards: [
            f"{PATHS.maps}/{name}/{engine}.json"
            for name, engine in maps_or_exit(REPO, PIPE.engines)
        ],
        today=lambda wildcards: [
            f"{PATHS.maps}/today/{study}.claims.json"
            for study in studies_of_today(REPO, PIPE.studies, PIPE.engines)
        ],
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
        "replicate step maps merge {input.accounts} --data {params.data}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule maps:
    input:
        rules.plan_maps.output.forecast,
        rules.merge_maps.output.table,
    localrule: True
