/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier.h"

int mca_coll_hier_to_mpi_error(int code)
{
    switch (code) {
    case HIER_OK:
        return OMPI_SUCCESS;
    case HIER_ERR_MEMORY:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case HIER_ERR_MISMATCH:
        return MPI_ERR_COUNT;
    case HIER_ERR_TIMEOUT:
        return OMPI_ERR_TIMEOUT;
    default:
        return OMPI_ERROR;
    }
}
