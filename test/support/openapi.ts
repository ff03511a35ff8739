import { Ajv2020 } from "ajv/dist/2020.js";

/** The parts of `/openapi.json` that tests read. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, ResponseDescription | Reference>>;
  readonly callbacks?: Readonly<Record<string, object>>;
}

export interface Media {
  readonly schema: { readonly properties?: Readonly<Record<string, { readonly format?: string }>> };
  readonly example?: Readonly<Record<string, string>>;
  readonly examples?: Readonly<Record<string, { readonly value: Readonly<Record<string, unknown>> }>>;
}

interface Reference {
  readonly $ref: string;
}

export interface ResponseDescription {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly required?: boolean } | Reference>>;
  readonly content: Readonly<Record<string, { readonly schema: unknown; readonly example?: unknown }>>;
}

export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export const readDocument = async (baseUrl: string) =>
  describedBy((await (await fetch(`${baseUrl}/openapi.json`)).json()) as Document);

export function describedBy(document: Document) {
  /** The target of a reference. */
  function resolve<T extends object>(value: T | Reference): T {
    if (!("$ref" in value)) return value;
    return value.$ref
      .slice("#/".length)
      .split("/")
      .reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document) as T;
  }

  const operations: readonly Described[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(document, "openapi.json");
  const escape = (step: string) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"));

  function faults(pointer: string, value: unknown): readonly string[] {
    const validate = ajv.compile({ $ref: `openapi.json${pointer}/schema` });
    validate(value);
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ""}`);
  }

  return {
    document,
    operations,
    responseOf: ({ responses }: Operation, status: number): ResponseDescription | undefined => {
      const response = responses[status];
      return response && resolve(response);
    },
    isRequired: (header: { readonly required?: boolean } | Reference): boolean => resolve(header).required === true,
    /** Lists the deviations of a response's body from its description. */
    faultsOf(
      { method, path, operation }: Described,
      { status, type, value }: { readonly status: number; readonly type: string; readonly value: unknown },
    ): readonly string[] {
      const response = operation.responses[status];
      if (!response) return [`${status} is not described`];
      const base =
        "$ref" in response
          ? response.$ref
          : `#/paths/${escape(path)}/${method.toLowerCase()}/responses/${String(status)}`;
      return faults(`${base}/content/${escape(type)}`, value);
    },
    /** The same for a request's JSON body. */
    faultsOfRequest: ({ method, path }: Described, value: unknown): readonly string[] =>
      faults(`#/paths/${escape(path)}/${method.toLowerCase()}/requestBody/content/application~1json`, value),
  };
}

/** The path with an id or a model in it. */
export const pathWith = (path: string): string =>
  path
    .replace("{model}", /embed/i.test(path) ? "local/embeddings" : "local/chat")
    .replace("{id}", path.startsWith("/v1/models") ? "local/chat" : "none");
