# Engines: fetch pinned packages, compile our programs.


wildcard_constraints:
    version="|".join(map(re.escape, WHEEL_VERSIONS)),
    digest="[0-9a-f]+",
    sha256="[0-9a-f]+",


DOWNLOAD = ".cache/downloads/{sha256}"
NS2_FOLDER = f"{PATHS.data}/engines/ns2-{{digest}}-{ENGINES['ns2'].version}"
LINUX_FOLDER = f"{PATHS.data}/engines/linux-{{digest}}-{ENGINES['linux'].version}"
# A build needs all cores. If runs started first, some core would always be busy, and the build and the runs that
# wait for it would come last.
BUILDS_FIRST = 500
lock_of = "workflow/engines/ns3/wheels/{}.lock".format
WHEEL_LOCKS = {
    wheel_hash(REPO / lock_of(version)): lock_of(version) for version in WHEEL_VERSIONS
}
sources_of = lambda engine: [
    path.relative_to(REPO) for path in engine.program_sources(REPO)
]


# Named by its hash, a download is never replaced, and is there before anything that was unpacked earlier is removed.
rule fetch_ns3_wheel:
    input:
        lock=lambda wildcards: ancient(WHEEL_LOCKS[wildcards.sha256]),
    output:
        wheel=DOWNLOAD,
    log:
        f"{PATHS.data}/logs/fetch_ns3_wheel/{{sha256}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/fetch_ns3_wheel/{{sha256}}.tsv"
    localrule: True
    script:
        "../scripts/fetch_ns3_wheel.py"


rule unpack_ns3_wheel:
    input:
        wheel=lambda wildcards: ancient(
            DOWNLOAD.format(sha256=wheel_hash(REPO / lock_of(wildcards.version)))
        ),
    output:
        prefix=directory(f"{PATHS.data}/engines/ns3-wheel-{{version}}/ns3"),
    log:
        f"{PATHS.data}/logs/unpack_ns3_wheel/{{version}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/unpack_ns3_wheel/{{version}}.tsv"
    localrule: True
    params:
        code=content_hash("workflow/scripts/unpack_ns3_wheel.py"),
    script:
        "../scripts/unpack_ns3_wheel.py"


BUILD_NS3 = (
    'echo "compiling our program for the wheel of ns-3 {wildcards.version}" >&2; '
    # Objects of an earlier build of the same ns-3 may exist.
    "rm -rf {params.build}; "
    "workflow/engines/compile_ns3 {params.build} NS3_PREFIX={params.prefix} --jobs {threads}"
    " > {log} 2>&1"
    " || {{ tail -n 20 {log} >&2; exit 1; }}"
)


# The programs' folders are named by the hash of their sources.
rule build_ns3_program:
    input:
        # A folder has no checksum; its content is that of the wheel in the lock, which is a source.
        prefix=ancient(rules.unpack_ns3_wheel.output.prefix),
        sources=lambda wildcards: ancient(
            sources_of(chosen_engine("ns3", wildcards.version))
        ),
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
        command=value_hash(BUILD_NS3),
        build=lambda wildcards, output: Path(output.program).parent,
        prefix=lambda wildcards, input: Path(input.prefix).absolute(),
    shell:
        BUILD_NS3


BUILD_NS2 = (
    'echo "laying out our ns-2 program" >&2; '
    "make --silent --directory workflow/engines/ns2"
    ' BUILD="$PWD/{params.build}" PYTHON="$(command -v python)"'
    " > {log} 2>&1"
    " || {{ tail -n 20 {log} >&2; exit 1; }}"
)


rule build_ns2_program:
    input:
        sources=ancient(sources_of(ENGINES["ns2"])),
    output:
        program=f"{NS2_FOLDER}/replicate-ns2",
    log:
        f"{PATHS.data}/logs/build_ns2_program/{{digest}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/build_ns2_program/{{digest}}.tsv"
    localrule: True
    params:
        command=value_hash(BUILD_NS2),
        build=lambda wildcards, output: Path(output.program).parent,
    shell:
        BUILD_NS2


BUILD_LINUX = (
    "workflow/engines/linux/build --output {params.build} --cache {params.cache}"
    " --hz {params.hz} --jobs {threads}"
    " 2> >(tee {log} >&2)"
)


rule build_linux_program:
    input:
        sources=ancient(sources_of(ENGINES["linux"])),
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
        command=value_hash(BUILD_LINUX),
        build=lambda wildcards, output: Path(output.program).parent,
        cache=linux_cache(Path()),
        hz=",".join(map(str, PLAN.timer_hz())),
    shell:
        BUILD_LINUX
