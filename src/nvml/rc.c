/* What NVML's return codes are called, mean and ask for. The one place where a code becomes a decision's class. */
#include "nvml/nvml.h"

const char *nvml_rc_name(int rc)
{
    switch (rc) {
#define X(name, theirs, number, text)                                                                                  \
    case number:                                                                                                       \
        return #name;
        NVML_RETURN_CODES(X)
#undef X
    case NVML_RC_IMPLAUSIBLE:
        return "IMPLAUSIBLE";
    default:
        return "UNKNOWN_CODE";
    }
}

const char *nvml_rc_text(int rc)
{
    switch (rc) {
#define X(name, theirs, number, text)                                                                                  \
    case number:                                                                                                       \
        return text;
        NVML_RETURN_CODES(X)
#undef X
    case NVML_RC_IMPLAUSIBLE:
        return "the driver gave a value that cannot be";
    default:
        return "a return code that is not known here";
    }
}

enum nvml_rc_kind nvml_rc_kind(int rc)
{
    switch (rc) {
    case NVML_RC_SUCCESS:
        return NVML_KIND_VALUE;
    case NVML_RC_NOT_SUPPORTED:
    case NVML_RC_FUNCTION_NOT_FOUND:
    case NVML_RC_DEPRECATED:
        return NVML_KIND_ABSENT;
    case NVML_RC_INVALID_ARGUMENT: /* old drivers say this for some readings that a device lacks */
    case NVML_RC_NO_PERMISSION:
    case NVML_RC_ARGUMENT_VERSION_MISMATCH:
        return NVML_KIND_ABSENT_LOGGED;
    case NVML_RC_UNINITIALIZED:
    case NVML_RC_DRIVER_NOT_LOADED:
    case NVML_RC_GPU_NOT_FOUND:
        return NVML_KIND_LIFECYCLE;
    case NVML_RC_GPU_IS_LOST:
    case NVML_RC_RESET_REQUIRED:
        return NVML_KIND_GPU_LOST;
    case NVML_RC_LIB_RM_VERSION_MISMATCH:
        return NVML_KIND_NEEDS_RESTART;
    default:
        return NVML_KIND_TRANSIENT;
    }
}

enum nvml_rc_kind nvml_init_rc_kind(int rc)
{
    switch (rc) {
    case NVML_RC_SUCCESS:
        return NVML_KIND_VALUE;
    case NVML_RC_LIB_RM_VERSION_MISMATCH:
    case NVML_RC_UNKNOWN:
        return NVML_KIND_NEEDS_RESTART;
    default:
        return NVML_KIND_LIFECYCLE;
    }
}

const char *nvml_init_advice(int rc)
{
    switch (rc) {
    case NVML_RC_SUCCESS:
        return "nothing to do";
    case NVML_RC_DRIVER_NOT_LOADED:
        return "load the NVIDIA kernel driver, or wait for the driver container; it is tried again";
    case NVML_RC_LIB_RM_VERSION_MISMATCH:
        return "the driver was upgraded under this library: restart the container (a host: reload the driver or "
               "reboot)";
    case NVML_RC_UNKNOWN:
        return "the container may have lost its devices to a cgroup update: restart it, run it privileged or with CDI";
    case NVML_RC_NO_PERMISSION:
    case NVML_RC_OPERATING_SYSTEM:
        return "give the container access to /dev/nvidiactl and /dev/nvidia*: runtimeClassName: nvidia, CDI or "
               "privileged";
    case NVML_RC_LIBRARY_NOT_FOUND:
    case NVML_RC_FUNCTION_NOT_FOUND:
        return "the driver's files in the container are incomplete: set NVIDIA_DRIVER_CAPABILITIES=utility";
    case NVML_RC_GPU_IS_LOST:
    case NVML_RC_RESET_REQUIRED:
        return "a GPU needs a reset or the node a reboot: see the kernel's log for Xid messages";
    case NVML_RC_IN_USE:
        return "another client holds the GPU (a reset or a MIG change?): it is tried again";
    default:
        return "see the kernel's log for NVRM messages; it is tried again";
    }
}
