"""The model of s21_space_from_json.py."""


def cnn_classifier(x_train, y_train, x_val, y_val, params):
    wholes = [key for key, value in params.items() if type(value) is int]
    loss = params["lr"] * params["num_classes"] + float(x_train.mean()) + params["reduce"] / 10
    return {"loss": [loss], "whole_numbers": [len(wholes)], "classes": [y_train.shape[1]]}, None
