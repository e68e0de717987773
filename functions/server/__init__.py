"""The server that stays: the second way in, beside the Lambda function."""

import os

# Before numpy is imported: BLAS would start threads for the whole machine, which wait by spinning. Heads
# multiply one row at a time, in as many threads as there are requests; measured on a busy machine, a product
# took 15 ms instead of 0.1.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
