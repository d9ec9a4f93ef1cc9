# Engines: fetch pinned packages, compile our programs.


wildcard_constraints:
    version="|".join(map(re.escape, WHEEL_VERSIONS)),
    digest="[0-9a-f]+",


NS3_WHEEL = f"{PATHS.data}/engines/ns3-wheel-{{version}}/ns3"
NS2_FOLDER = f"{PATHS.data}/engines/ns2-{{digest}}-{ENGINES['ns2'].version}"
LINUX_FOLDER = f"{PATHS.data}/engines/linux-{{digest}}-{ENGINES['linux'].version}"
# A build needs all cores. If runs started first, some core would always be busy, and the build and the runs that
# wait for it would come last.
BUILDS_FIRST = 500


rule fetch_ns3_wheel:
    input:
        lock="workflow/engines/ns3/wheels/{version}.lock",
    output:
        prefix=directory(NS3_WHEEL),
    log:
        f"{PATHS.data}/logs/fetch_ns3_wheel/{{version}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/fetch_ns3_wheel/{{version}}.tsv"
    localrule: True
    script:
        "../scripts/fetch_ns3_wheel.py"


rule build_ns3_program:
    input:
        prefix=rules.fetch_ns3_wheel.output.prefix,
        sources=lambda wildcards: [
            p.relative_to(REPO)
            for p in chosen_engine("ns3", wildcards.version).program_sources(REPO)
        ],
    output:
        program=f"{PATHS.data}/engines/ns3-{{digest}}-{{version}}/replicate-ns3",
    log:
        f"{PATHS.data}/logs/build_ns3_program/{{digest}}-{{version}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/build_ns3_program/{{digest}}-{{version}}.tsv"
    priority: BUILDS_FIRST
    localrule: True
    threads: workflow.cores
    params:
        build=lambda wildcards, output: Path(output.program).parent,
        prefix=lambda wildcards, input: Path(input.prefix).absolute(),
    shell:
        'echo "compiling our program for the wheel of ns-3 {wildcards.version}" >&2; '
        # Objects of an earlier build of the same ns-3 may exist.
        "rm -rf {params.build}; "
        "workflow/engines/compile_ns3 {params.build} NS3_PREFIX={params.prefix} --jobs {threads}"
        " > {log} 2>&1"
        " || {{ tail -n 20 {log} >&2; exit 1; }}"


rule build_ns2_program:
    input:
        sources=[p.relative_to(REPO) for p in ENGINES["ns2"].program_sources(REPO)],
    output:
        program=f"{NS2_FOLDER}/replicate-ns2",
    log:
        f"{PATHS.data}/logs/build_ns2_program/{{digest}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/build_ns2_program/{{digest}}.tsv"
    localrule: True
    params:
        build=lambda wildcards, output: Path(output.program).parent,
    shell:
        'echo "laying out our ns-2 program" >&2; '
        "make --silent --directory workflow/engines/ns2"
        ' BUILD="$PWD/{params.build}" PYTHON="$(command -v python)"'
        " > {log} 2>&1"
        " || {{ tail -n 20 {log} >&2; exit 1; }}"


rule build_linux_program:
    input:
        sources=[p.relative_to(REPO) for p in ENGINES["linux"].program_sources(REPO)],
    output:
        program=f"{LINUX_FOLDER}/replicate-linux",
        kernel=f"{LINUX_FOLDER}/linux",
        initrd=f"{LINUX_FOLDER}/initrd",
        version=f"{LINUX_FOLDER}/version",
    log:
        f"{PATHS.data}/logs/build_linux_program/{{digest}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/build_linux_program/{{digest}}.tsv"
    priority: BUILDS_FIRST
    localrule: True
    threads: workflow.cores
    params:
        build=lambda wildcards, output: Path(output.program).parent,
        cache=linux_cache(Path()),
        hz=",".join(map(str, PIPE.plan.timer_hz())),
    shell:
        "workflow/engines/linux/build --output {params.build} --cache {params.cache}"
        " --hz {params.hz} --jobs {threads}"
        " 2> >(tee {log} >&2)"
