"""Certificates for one run, made with the openssl command line. Small EC keys; nothing here outlives the run."""

import subprocess


def _openssl(*args):
    done = subprocess.run(["openssl", *[str(a) for a in args]], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]} failed:\n{done.stderr}")


class Authority:
    """A private certificate authority in a folder of its own."""

    def __init__(self, folder, name):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        self.certificate, self._key = folder / f"{name}.crt", folder / f"{name}.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                 "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate,
                 "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, file_name, subject, names=("DNS:localhost", "IP:127.0.0.1")):
        """Returns (certificate path, key path) for servers and clients alike."""
        certificate, key = self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key"
        request, extensions = self.folder / f"{file_name}.csr", self.folder / f"{file_name}.ext"
        extensions.write_text("basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n"
                              f"subjectAltName={','.join(names)}\n")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                 "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-days", "2",
                 "-set_serial", str(int.from_bytes(file_name.encode()[-8:], "big")), "-extfile", extensions,
                 "-out", certificate)
        return certificate, key


def make_key_pair(folder, name):
    """An RSA pair for service account tokens; returns (private, public)."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    _openssl("genrsa", "-out", private, "2048")
    _openssl("rsa", "-in", private, "-pubout", "-out", public)
    return private, public
