"""What the library costs, as ratios to floors measured in the same run. `python -m benchmarks` prints and keeps them.

measure.py takes the time; figure.py says what a figure is; chains.py holds the floors and the chains that are compared
with them; one module for each group of figures; report.py prints. README.md says what each figure means.
"""
