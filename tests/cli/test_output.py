import json

import numpy as np
import pytest

from sdulearn.cli.output import print_json


def test_one_object_on_standard_output(capsys):
    print_json({"value": np.array([1.0, np.nan]), "name": "Łódź"})
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {"value": [1.0, None], "name": "Łódź"}


def test_what_json_has_no_word_for_is_refused():
    with pytest.raises(TypeError, match="not JSON serializable"):
        print_json({"value": object()})
