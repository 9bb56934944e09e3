"""Loading against files, a server on loopback and no server at all; never the network."""

import bz2
import gzip
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import numpy as np
import pytest
from sklearn.datasets import _openml, dump_svmlight_file

from reproduction.datasets import BENCHMARKS, load_benchmark, load_multiclass
from sdulearn.datasets import make_waveform
from sdulearn.errors import FileError, InputError

BANANA = """@RELATION banana
@ATTRIBUTE V1 NUMERIC
@ATTRIBUTE V2 NUMERIC
@ATTRIBUTE Class {1,2}
@DATA
0.5,1.5,1
-1,2,2
3,4,1
"""


class FakeOpenML:
    """As much of OpenML as fetch_openml asks for, on loopback."""

    def __init__(self, data_id, name, arff, features, n_rows):
        digest = hashlib.md5(arff.encode()).hexdigest()
        description = {
            "id": str(data_id), "name": name, "version": "1", "description": "made up",
            "status": "active", "format": "ARFF", "file_id": "7",
            "md5_checksum": digest, "url": "https://www.openml.org/data/v1/download/7",
            "default_target_attribute": "Class",
        }  # fmt: skip
        columns = [
            {"index": str(i), "name": column, "data_type": kind, "is_target": str(column == "Class").lower(),
             "is_ignore": "false", "number_of_missing_values": "0", "is_row_identifier": "false"}
            for i, (column, kind) in enumerate(features)
        ]  # fmt: skip
        self.answers = {
            f"/api/v1/json/data/{data_id}": json.dumps({"data_set_description": description}),
            f"/api/v1/json/data/features/{data_id}": json.dumps({"data_features": {"feature": columns}}),
            f"/api/v1/json/data/qualities/{data_id}": json.dumps(
                {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": str(n_rows)}]}}
            ),
            "/data/v1/download/7": arff,
        }
        self.asked = []

    def __enter__(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = "/" + self.path.strip("/")
                fake.asked.append(path)
                body = fake.answers.get(path)
                self.send_response(200 if body else 404)
                self.send_header("Content-Encoding", "gzip")
                self.end_headers()
                self.wfile.write(gzip.compress((body or "").encode()))

            def log_message(self, *args):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def urlopen(self, request):
        path = urlparse(request.full_url).path
        return urlopen(
            Request(f"http://127.0.0.1:{self.server.server_port}{path}", headers=dict(request.header_items()))
        )


@pytest.fixture(autouse=True)
def no_data():
    """That of the other tests would refuse the fake server, too."""


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    def refuse(request):
        raise URLError("no network")

    monkeypatch.delenv("SDULEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(_openml, "urlopen", refuse)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


@pytest.fixture
def banana(no_network, monkeypatch):
    columns = [("V1", "numeric"), ("V2", "numeric"), ("Class", "nominal")]
    with FakeOpenML(1460, "banana", BANANA, columns, 3) as server:
        monkeypatch.setattr(_openml, "urlopen", server.urlopen)
        yield server


def write_set(folder, name, n=20):
    X, y = make_waveform(n, random_state=0)
    dump_svmlight_file(X, y, str(folder / "plain"), zero_based=False)
    (folder / f"{name}.svm.bz2").write_bytes(bz2.compress((folder / "plain").read_bytes()))
    return X, y


def test_download_once_then_from_the_cache(banana):
    X, y = load_benchmark("banana")
    np.testing.assert_array_equal(X, [[0.5, 1.5], [-1, 2], [3, 4]])
    np.testing.assert_array_equal(y, [-1, 1, -1])  # the minority class is +1
    asked = len(banana.asked)
    load_benchmark("banana")
    assert len(banana.asked) == asked > 0


def test_nominal_features_become_indicators(no_network, monkeypatch):
    columns = [f"a{i}" for i in range(34)]  # 34 features with two values each: 68 indicators
    arff = "@RELATION p\n" + "".join(f"@ATTRIBUTE {c} {{-1,1}}\n" for c in columns) + "@ATTRIBUTE Class {-1,1}\n@DATA\n"
    arff += "".join(",".join([v] * 34) + f",{c}\n" for v, c in (("1", "1"), ("-1", "1"), ("1", "-1")))
    features = [(c, "nominal") for c in [*columns, "Class"]]
    with FakeOpenML(4534, "PhishingWebsites", arff, features, 3) as server:
        monkeypatch.setattr(_openml, "urlopen", server.urlopen)
        X, y = load_benchmark("phishing")
    assert X.shape == (3, 68)
    np.testing.assert_array_equal(X.sum(axis=1), 34)
    np.testing.assert_array_equal(y, [-1, -1, 1])


@pytest.mark.filterwarnings("ignore:Invalid cache:RuntimeWarning")
def test_damaged_download_is_refused(banana):
    banana.answers["/data/v1/download/7"] = BANANA.replace("0.5", "0.6")
    with pytest.raises(ValueError, match=r"download of banana is damaged.*Delete the folder"):
        load_benchmark("banana")


def test_another_set_under_the_same_number_is_refused(banana):
    path = "/api/v1/json/data/1460"
    banana.answers[path] = banana.answers[path].replace("banana", "apple")
    with pytest.raises(ValueError, match=r"should be 'banana', but is 'apple'.*SDULEARN_DATA"):
        load_benchmark("banana")


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "waveform"])
def test_offline_says_what_to_do(no_network, name):
    with pytest.raises(FileError, match=rf"{name}.*cannot be reached.*{name}\.svm\.bz2.*SDULEARN_DATA"):
        load_benchmark(name)


def test_waveform_is_generated_where_there_is_no_file(no_network, tmp_path):
    X, y = load_benchmark("waveform")
    assert X.shape == (5000, 21)
    again, _ = load_benchmark("waveform", folder=str(tmp_path))
    np.testing.assert_array_equal(X, again)
    assert set(y) == {-1, 1}


def test_folder_comes_first(banana, monkeypatch, tmp_path):
    X, y = write_set(tmp_path, "banana")
    monkeypatch.setenv("SDULEARN_DATA", str(tmp_path))
    found, classes = load_benchmark("banana")
    np.testing.assert_allclose(found, X)
    np.testing.assert_array_equal(classes, y)
    assert banana.asked == []
    with pytest.raises(FileError, match=r"adult\.svm\.bz2 does not exist.*Unset it to download"):
        load_benchmark("adult")


def test_checksums_of_files(tmp_path):
    write_set(tmp_path, "magic")
    right = hashlib.sha256((tmp_path / "magic.svm.bz2").read_bytes()).hexdigest()
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{right}  magic.svm.bz2\n")
    load_benchmark("magic", folder=str(tmp_path))
    sums.write_text(f"{'0' * 64}  magic.svm.bz2\n")
    with pytest.raises(ValueError, match=r"damaged or another version.*SHA256SUMS"):
        load_benchmark("magic", folder=str(tmp_path))


def test_unknown_name():
    with pytest.raises(ValueError, match="Unknown benchmark `name='iris'`; choose one of"):
        load_benchmark("iris")


def test_multiclass_files_are_read_with_classes_from_one(tmp_path, monkeypatch):
    (tmp_path / "multi").mkdir()
    (tmp_path / "multi" / "vowel.svm.bz2").write_bytes(bz2.compress(b"7 1:0.5\n3 1:2 2:1\n9 2:4\n"))
    X, y = load_multiclass("vowel", folder=str(tmp_path))
    assert X.tolist() == [[0.5, 0], [2, 1], [0, 4]]
    assert y.tolist() == [2, 1, 3]
    monkeypatch.setenv("SDULEARN_DATA", str(tmp_path))
    assert load_multiclass("vowel")[1].tolist() == [2, 1, 3]
    assert sorted(set(load_multiclass("wine")[1].tolist())) == [1, 2, 3]


def test_a_multiclass_set_that_is_missing(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="choose one of"):
        load_multiclass("nothing")
    with pytest.raises(FileError, match="does not exist"):
        load_multiclass("vowel", folder=str(tmp_path))
    monkeypatch.delenv("SDULEARN_DATA", raising=False)
    with pytest.raises(FileError, match="SDULEARN_DATA"):
        load_multiclass("vowel")
