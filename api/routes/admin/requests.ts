import type { RequestHandler } from "express";
import { notFound } from "#errors";
import type { Money } from "#money";
import { renderEntry } from "./entry.ts";

export function requestHandlers({ money }: { money: Money }) {
  return {
    get: async (req, res) => {
      const entry = await money.entry(req.params.id);
      if (!entry) throw notFound("request");
      res.json(renderEntry(entry));
    },
  } satisfies Record<string, RequestHandler<{ id: string }>>;
}
