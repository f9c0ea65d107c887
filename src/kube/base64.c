/* Base64 as kubeconfigs and Secrets have it (RFC 4648 section 4). */
#include "kube/kube_private.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

char *kube_from_base64(const char *text)
{
    char *out = (char *)mem_new_array(strlen(text) / 4 * 3 + 4, 1);
    size_t len = 0;
    uint32_t bits = 0;
    int n_bits = 0;
    const char *c = text;
    for (; *c && *c != '='; c++) {
        int value = value_of(*c);
        if (value < 0 && strchr(" \r\n\t", *c))
            continue;
        if (value < 0)
            break;
        bits = (bits << 6 | (uint32_t)value) & 0xffffff;
        n_bits += 6;
        if (n_bits >= 8)
            out[len++] = (char)(bits >> (n_bits -= 8) & 0xff);
    }
    if (c[strspn(c, "= \r\n\t")] || strlen(out) != len || len == 0) {
        free(out);
        return NULL;
    }
    return out;
}

void kube_to_base64(struct buf *out, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = 0;
        size_t n = len - i < 3 ? len - i : 3;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < n ? (unsigned char)bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            (void)buf_append_char(out, j <= n ? digits[bits >> (18 - 6 * j) & 63] : '=');
    }
}
