"""Builds the images: `python containers --help`, or `make images`."""

from image_build.command_line import main

if __name__ == "__main__":
    main()
