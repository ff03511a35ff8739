import { modelList, modelObject } from "../routes/models.ts";
import { operation, pathId } from "./operation.ts";

export const models = {
  "GET /v1/models": operation("listModels", "Every model that can be called now", {
    security: [],
    ok: ["The models with their prices", modelList],
  }),
  "GET /v1/models/{id}": operation("getModel", "One model; the slash is part of the id", {
    security: [],
    params: pathId("local/chat"),
    ok: ["The model", modelObject],
    errors: [404],
  }),
};
