"""Builds the images of `containers/`: `make images`, or `python containers --help`.

In: the Dockerfiles, the engines' sources and the locks. Out: images in podman's or docker's store,
and `containers/lock.yaml`. A new image is a new folder with a Dockerfile beside the others; what
its build needs beyond the engine's sources is laid out by `stage.py`.
"""
