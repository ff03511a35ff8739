// Written by `npm run docs` from the OpenAPI document: do not edit.

export interface paths {
    "/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Chat, as JSON or as a stream */
        post: operations["createChatCompletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/embeddings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Embeddings of a text, or of up to 256 texts */
        post: operations["createEmbeddings"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/generations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Images from a prompt, priced per image */
        post: operations["createImage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/media/generations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Video, audio and other media, priced per unit of output */
        post: operations["createMedia"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/media/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A generated file; takes Range */
        get: operations["getFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's uploads of the last 24 hours, newest first */
        get: operations["listUploads"];
        put?: never;
        /** Upload a file as a raw body, as a form, or in parts (JSON) */
        post: operations["createUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/uploads/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One upload */
        get: operations["getUpload"];
        put?: never;
        post?: never;
        /** Delete an upload at once */
        delete: operations["deleteUpload"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/uploads/{id}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Complete an upload in parts: the `complete_url` of a pending one */
        post: operations["completeUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every model that can be called now
         * @description The headers of the request choose the format: `anthropic-version` Anthropic's, else `x-goog-api-key` or `x-goog-api-client` Google's, else this service's own. Only the last is whole; the others come in pages, whose parameters it ignores.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One model; the slash is part of the id
         * @description The headers of the request choose the format: `anthropic-version` Anthropic's, else `x-goog-api-key` or `x-goog-api-client` Google's, else this service's own.
         */
        get: operations["getModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/balance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's balance, exact */
        get: operations["getBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change the account's settings (scope `manage`) */
        patch: operations["updateAccount"];
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What was used, by day, model, key and endpoint
         * @description Of the key itself; with the scope `manage` of the whole account. A call counts on the day, in UTC, on which it ended, a refund on its own; sums are at most about a minute old.
         */
        get: operations["listUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A month by day and model, as JSON or CSV by `Accept` (scope `manage`) */
        get: operations["getInvoice"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Calls that ended, newest first, without prompts and answers
         * @description Of the key itself; with the scope `manage` of the whole account. A call that still runs is not there yet. A page may have fewer calls than `limit`, or none, and `has_more`: each page compares a bounded number of calls with the filters. Go on with `next`.
         */
        get: operations["listRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One call, with its attempts at upstreams, or a refused request */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/generation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One call in OpenRouter's field names
         * @description Amounts are JSON numbers here; the exact ones are in `GET /v1/requests/{id}`.
         */
        get: operations["getGeneration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The key that asks, with its account and what it spent */
        get: operations["getOwnKey"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's keys, newest first */
        get: operations["listKeys"];
        put?: never;
        /** Make a key that may do at most what the key that asks may do */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a key; in force everywhere within a second */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        /** Change a key; in force everywhere within a second */
        patch: operations["updateKey"];
        trace?: never;
    };
    "/v1/topups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's top-ups, newest first */
        get: operations["listTopups"];
        put?: never;
        /** Ask for a payment by Solana Pay */
        post: operations["createTopup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/topups/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One top-up; `status` says when it was credited */
        get: operations["getTopup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description More fields are allowed: they are the model's own */
        ChatRequest: ({
            /** @description provider/model */
            model?: string;
            messages: components["schemas"]["Message"][];
            /** @description true returns server-sent events */
            stream?: boolean | null;
            max_tokens?: number | null;
            max_completion_tokens?: number | null;
            temperature?: number | null;
            top_p?: number | null;
            n?: number | null;
            stop?: (string | string[]) | null;
            seed?: number | null;
            /** @description Works where the model supports tools */
            tools?: components["schemas"]["Tool"][] | null;
            tool_choice?: components["schemas"]["ToolChoice"] | null;
            parallel_tool_calls?: boolean | null;
            /** @description Where the model supports it */
            response_format?: components["schemas"]["ResponseFormat"] | null;
            /** @description The last chunk of a stream has usage in any case */
            stream_options?: ({
                include_usage?: boolean | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
            logprobs?: boolean | null;
            top_logprobs?: number | null;
            /**
             * @description Of models that reason
             * @example low
             */
            reasoning_effort?: string | null;
            frequency_penalty?: number | null;
            presence_penalty?: number | null;
            logit_bias?: {
                [key: string]: number;
            } | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
            user?: string | null;
            modalities?: ("text" | "audio")[] | null;
            audio?: ({
                voice: unknown;
                format: string;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        Message: components["schemas"]["SystemMessage"] | components["schemas"]["UserMessage"] | components["schemas"]["AssistantMessage"] | components["schemas"]["ToolMessage"];
        SystemMessage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "system" | "developer";
            content?: (string | components["schemas"]["TextPart"][]) | null;
            name?: string | null;
        } & {
            [key: string]: unknown;
        };
        TextPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "text";
            text: string;
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        UserMessage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "user";
            content?: (string | components["schemas"]["ContentPart"][]) | null;
            name?: string | null;
        } & {
            [key: string]: unknown;
        };
        ContentPart: components["schemas"]["TextPart"] | components["schemas"]["ImagePart"] | components["schemas"]["AudioPart"] | components["schemas"]["FilePart"];
        ImagePart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "image_url";
            image_url: {
                /** @description An https address, a data URL, or the id of an upload, `upl_...` */
                url: string;
                detail?: ("auto" | "low" | "high" | "original") | null;
            } & {
                [key: string]: unknown;
            };
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        AudioPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input_audio";
            input_audio: {
                /** @description Base64, or the id of an upload */
                data: string;
                /** @example wav */
                format?: string | null;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        FilePart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file";
            file: {
                /** @description A data URL, or base64 */
                file_data?: string | null;
                /** @description The id of an upload */
                file_id?: string | null;
                filename?: string | null;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        AssistantMessage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "assistant";
            content?: (string | components["schemas"]["AssistantContentPart"][]) | null;
            refusal?: string | null;
            name?: string | null;
            tool_calls?: components["schemas"]["ToolCall"][] | null;
            /** @description What the model thought, of models that show it */
            reasoning_content?: string | null;
            /** @description The same with the provider's signatures; send it back unchanged with the next turn */
            reasoning_details?: ({
                type: string;
            } & {
                [key: string]: unknown;
            })[] | null;
        } & {
            [key: string]: unknown;
        };
        AssistantContentPart: components["schemas"]["TextPart"] | components["schemas"]["RefusalPart"];
        RefusalPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "refusal";
            refusal: string;
        } & {
            [key: string]: unknown;
        };
        ToolCall: components["schemas"]["FunctionToolCall"] | components["schemas"]["CustomToolCall"];
        FunctionToolCall: {
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function";
            function: {
                name: string;
                /** @description JSON, as the model wrote it */
                arguments: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        CustomToolCall: {
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "custom";
            custom: {
                name: string;
                input: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        ToolMessage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            role: "tool";
            /** @description The `id` of the call; many models need it */
            tool_call_id?: string | null;
            content?: (string | components["schemas"]["ContentPart"][]) | null;
        } & {
            [key: string]: unknown;
        };
        Tool: components["schemas"]["FunctionTool"] | components["schemas"]["CustomTool"];
        FunctionTool: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function";
            function: {
                name: string;
                description?: string | null;
                parameters?: components["schemas"]["JsonSchema"] | null;
                strict?: boolean | null;
            } & {
                [key: string]: unknown;
            };
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        /** @description A JSON Schema */
        JsonSchema: {
            [key: string]: unknown;
        };
        CustomTool: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "custom";
            custom: {
                name: string;
                description?: string | null;
                format?: ({
                    type: string;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        ToolChoice: ("none" | "auto" | "required") | ({
            /** @constant */
            type: "function";
            function: {
                name: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "custom";
            custom: {
                name: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "allowed_tools";
            allowed_tools: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        });
        ResponseFormat: ({
            /** @constant */
            type: "text";
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "json_object";
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "json_schema";
            json_schema: {
                name: string;
                description?: string | null;
                schema?: components["schemas"]["JsonSchema"];
                strict?: boolean | null;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        });
        /** @description Which upstreams serve the call; by their ids in the catalog */
        ProviderPreferences: {
            /** @description Upstreams to try first, in this order */
            order?: string[] | null;
            /** @description No others are tried */
            only?: string[] | null;
            /** @description These are not tried */
            ignore?: string[] | null;
            /** @description Tries the cheapest or the fastest first; those of which nothing is known come last */
            sort?: ("price" | "latency" | "throughput") | null;
            /** @description false: only the upstreams in `order` are tried, or without it the first one alone */
            allow_fallbacks?: boolean | null;
        };
        /** @description The prompt becomes the message of a user */
        CompletionsRequest: ({
            /** @description provider/model */
            model?: string;
            prompt: string | string[];
            /** @description true returns server-sent events */
            stream?: boolean | null;
            max_tokens?: number | null;
            temperature?: number | null;
            top_p?: number | null;
            n?: number | null;
            stop?: (string | string[]) | null;
            seed?: number | null;
            stream_options?: {
                [key: string]: unknown;
            } | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
            best_of?: number | null;
            echo?: false | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        MessagesRequest: ({
            /** @description The provider's own id, or provider/model */
            model?: string;
            messages: components["schemas"]["MessagesMessage"][];
            system?: (string | components["schemas"]["TextBlock"][]) | null;
            tools?: components["schemas"]["MessagesTool"][] | null;
            tool_choice?: components["schemas"]["MessagesToolChoice"] | null;
            thinking?: ({
                type: string;
                budget_tokens?: number | null;
            } & {
                [key: string]: unknown;
            }) | null;
            output_config?: ({
                effort?: string | null;
                format?: ({
                    type: string;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            }) | null;
            cache_control?: ({
                type: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
            max_tokens: number;
            /** @description true returns server-sent events */
            stream?: boolean | null;
            stop_sequences?: string[] | null;
            temperature?: number | null;
            top_p?: number | null;
            top_k?: number | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        MessagesMessage: {
            /** @enum {string} */
            role: "user" | "assistant" | "system";
            content: string | components["schemas"]["InputBlock"][];
        } & {
            [key: string]: unknown;
        };
        /** @description Other blocks pass through where the provider is Anthropic */
        InputBlock: components["schemas"]["TextBlock"] | components["schemas"]["ImageBlock"] | components["schemas"]["DocumentBlock"] | components["schemas"]["ToolUseBlock"] | components["schemas"]["ToolResultBlock"] | components["schemas"]["ThinkingBlock"] | components["schemas"]["RedactedThinkingBlock"];
        TextBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "text";
            text: string;
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        ImageBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "image";
            source: ({
                /** @constant */
                type: "base64";
                media_type: string;
                data: string;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @constant */
                type: "url";
                /** @description An https address, or the id of an upload */
                url: string;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @constant */
                type: "text";
                /** @constant */
                media_type: "text/plain";
                data: string;
            } & {
                [key: string]: unknown;
            });
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        DocumentBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "document";
            source: ({
                /** @constant */
                type: "base64";
                media_type: string;
                data: string;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @constant */
                type: "url";
                /** @description An https address, or the id of an upload */
                url: string;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @constant */
                type: "text";
                /** @constant */
                media_type: "text/plain";
                data: string;
            } & {
                [key: string]: unknown;
            });
            title?: string | null;
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        ToolUseBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool_use";
            id: string;
            name: string;
            input: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        ToolResultBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool_result";
            tool_use_id: string;
            content?: (string | (components["schemas"]["TextBlock"] | components["schemas"]["ImageBlock"] | components["schemas"]["DocumentBlock"])[]) | null;
            is_error?: boolean | null;
        } & {
            [key: string]: unknown;
        };
        ThinkingBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "thinking";
            thinking: string;
            signature: string;
        } & {
            [key: string]: unknown;
        };
        RedactedThinkingBlock: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "redacted_thinking";
            data: string;
        } & {
            [key: string]: unknown;
        };
        MessagesTool: {
            /** @description `custom` or none: a tool that the caller runs */
            type?: string | null;
            name: string;
            description?: string | null;
            input_schema?: components["schemas"]["JsonSchema"];
            /** @description Caches the prompt up to here, for models that cache on request */
            cache_control?: ({
                /** @constant */
                type: "ephemeral";
                ttl?: ("5m" | "1h") | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        MessagesToolChoice: ({
            /** @enum {string} */
            type: "auto" | "any";
            disable_parallel_tool_use?: boolean | null;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "tool";
            name: string;
            disable_parallel_tool_use?: boolean | null;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "none";
        } & {
            [key: string]: unknown;
        });
        CountTokensRequest: ({
            /** @description The provider's own id, or provider/model */
            model?: string;
            messages: components["schemas"]["MessagesMessage"][];
            system?: (string | components["schemas"]["TextBlock"][]) | null;
            tools?: components["schemas"]["MessagesTool"][] | null;
            tool_choice?: components["schemas"]["MessagesToolChoice"] | null;
            thinking?: ({
                type: string;
                budget_tokens?: number | null;
            } & {
                [key: string]: unknown;
            }) | null;
            output_config?: ({
                effort?: string | null;
                format?: ({
                    type: string;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            }) | null;
            cache_control?: ({
                type: string;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        ResponsesRequest: ({
            /** @description The provider's own id, or provider/model */
            model?: string;
            input: string | components["schemas"]["InputItem"][];
            instructions?: string | null;
            /** @description true returns server-sent events */
            stream?: boolean | null;
            max_output_tokens?: number | null;
            temperature?: number | null;
            top_p?: number | null;
            /** @description Functions and other tools that the caller runs */
            tools?: components["schemas"]["ResponsesTool"][] | null;
            tool_choice?: components["schemas"]["ResponsesToolChoice"] | null;
            parallel_tool_calls?: boolean | null;
            text?: ({
                format?: components["schemas"]["TextFormat"] | null;
                verbosity?: string | null;
            } & {
                [key: string]: unknown;
            }) | null;
            reasoning?: ({
                effort?: string | null;
                summary?: string | null;
                mode?: string | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description A stored response of the account, which the input continues */
            previous_response_id?: string | null;
            include?: string[] | null;
            top_logprobs?: number | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description Unless false, the response is stored for the account for 24 hours */
            store?: boolean | null;
            background?: boolean | null;
            service_tier?: string | null;
            stream_options?: {
                [key: string]: unknown;
            } | null;
            prompt_cache_options?: ({
                ttl?: string | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        InputItem: components["schemas"]["InputMessage"] | components["schemas"]["FunctionCallItem"] | components["schemas"]["FunctionCallOutputItem"] | components["schemas"]["CustomToolCallItem"] | components["schemas"]["OtherCallItem"] | components["schemas"]["OtherOutputItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ItemReference"];
        InputMessage: {
            /** @constant */
            type?: "message";
            /** @enum {string} */
            role: "user" | "assistant" | "system" | "developer";
            content: string | (components["schemas"]["InputText"] | components["schemas"]["InputImage"] | components["schemas"]["InputFile"] | components["schemas"]["OutputText"] | components["schemas"]["OutputRefusal"])[];
        } & {
            [key: string]: unknown;
        };
        InputText: {
            /** @constant */
            type: "input_text";
            text: string;
        } & {
            [key: string]: unknown;
        };
        InputImage: {
            /** @constant */
            type: "input_image";
            /** @description An https address, a data URL, or the id of an upload */
            image_url?: string | null;
            /** @description The id of an upload */
            file_id?: string | null;
            detail?: string | null;
        } & {
            [key: string]: unknown;
        };
        InputFile: {
            /** @constant */
            type: "input_file";
            file_data?: string | null;
            file_url?: string | null;
            /** @description The id of an upload */
            file_id?: string | null;
            filename?: string | null;
        } & {
            [key: string]: unknown;
        };
        OutputText: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "output_text";
            text: string;
            annotations?: ({
                type: string;
            } & {
                [key: string]: unknown;
            })[];
            logprobs?: ({
                token: string;
                logprob: number;
            } & {
                [key: string]: unknown;
            })[];
        } & {
            [key: string]: unknown;
        };
        OutputRefusal: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "refusal";
            refusal: string;
        } & {
            [key: string]: unknown;
        };
        FunctionCallItem: {
            id?: string | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function_call";
            call_id: string;
            name: string;
            /** @description JSON, as the model wrote it */
            arguments: string;
            status?: ("in_progress" | "completed" | "incomplete") | null;
        } & {
            [key: string]: unknown;
        };
        FunctionCallOutputItem: {
            id?: string | null;
            /** @constant */
            type: "function_call_output";
            call_id: string;
            output: string | (components["schemas"]["InputText"] | components["schemas"]["InputImage"] | components["schemas"]["InputFile"])[];
        } & {
            [key: string]: unknown;
        };
        CustomToolCallItem: {
            id?: string | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "custom_tool_call";
            call_id: string;
            name: string;
            input: string;
        } & {
            [key: string]: unknown;
        };
        /** @description Of OpenAI's tools that the caller runs */
        OtherCallItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool_search_call" | "apply_patch_call" | "local_shell_call" | "shell_call";
            call_id?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The results of those */
        OtherOutputItem: {
            /** @enum {string} */
            type: "custom_tool_call_output" | "tool_search_output" | "apply_patch_call_output" | "local_shell_call_output" | "shell_call_output" | "additional_tools";
            call_id?: string | null;
        } & {
            [key: string]: unknown;
        };
        ReasoningItem: {
            id?: string | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reasoning";
            summary: ({
                /** @constant */
                type: "summary_text";
                text: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Send it back unchanged with the next turn */
            encrypted_content?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** @description An item that is stored for the account */
        ItemReference: {
            /** @constant */
            type: "item_reference";
            id: string;
        } & {
            [key: string]: unknown;
        };
        ResponsesTool: ({
            /** @constant */
            type: "function";
            name: string;
            description?: string | null;
            parameters?: components["schemas"]["JsonSchema"] | null;
            strict?: boolean | null;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "custom";
            name: string;
            description?: string | null;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "namespace";
            name: string;
            tools: ({
                type: string;
            } & {
                [key: string]: unknown;
            })[];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @enum {string} */
            type: "tool_search" | "apply_patch" | "local_shell" | "shell";
        } & {
            [key: string]: unknown;
        });
        ResponsesToolChoice: ("none" | "auto" | "required") | ({
            /** @enum {string} */
            type: "function" | "custom";
            name: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "allowed_tools";
            mode: string;
            tools: {
                [key: string]: unknown;
            }[];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @enum {string} */
            type: "apply_patch" | "shell";
        } & {
            [key: string]: unknown;
        });
        TextFormat: ({
            /** @enum {string} */
            type: "text" | "json_object";
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "json_schema";
            name: string;
            schema: components["schemas"]["JsonSchema"];
            strict?: boolean | null;
        } & {
            [key: string]: unknown;
        });
        GenerateContentRequest: {
            contents: components["schemas"]["GeminiContent"][];
            systemInstruction?: ({
                parts?: components["schemas"]["GeminiPart"][] | null;
            } & {
                [key: string]: unknown;
            }) | null;
            tools?: ({
                functionDeclarations?: components["schemas"]["FunctionDeclaration"][] | null;
            } & {
                [key: string]: unknown;
            })[] | null;
            toolConfig?: ({
                functionCallingConfig?: ({
                    mode?: string | null;
                    allowedFunctionNames?: string[] | null;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            }) | null;
            generationConfig?: ({
                maxOutputTokens?: number | null;
                candidateCount?: number | null;
                temperature?: number | null;
                topP?: number | null;
                topK?: number | null;
                stopSequences?: string[] | null;
                seed?: number | null;
                presencePenalty?: number | null;
                frequencyPenalty?: number | null;
                responseLogprobs?: boolean | null;
                logprobs?: number | null;
                responseMimeType?: string | null;
                responseModalities?: string[] | null;
                responseFormat?: ({
                    text?: ({
                        mimeType?: string | null;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                } & {
                    [key: string]: unknown;
                })[] | null;
                thinkingConfig?: ({
                    includeThoughts?: boolean | null;
                    thinkingBudget?: number | null;
                    thinkingLevel?: string | null;
                } & {
                    [key: string]: unknown;
                }) | null;
            } & {
                [key: string]: unknown;
            }) | null;
            safetySettings?: {
                [key: string]: unknown;
            }[] | null;
            serviceTier?: string | null;
            store?: boolean | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        GeminiContent: {
            role?: string | null;
            parts?: components["schemas"]["GeminiPart"][] | null;
        } & {
            [key: string]: unknown;
        };
        GeminiPart: {
            text?: string | null;
            thought?: boolean | null;
            thoughtSignature?: string | null;
            inlineData?: ({
                mimeType: string;
                data: string;
            } & {
                [key: string]: unknown;
            }) | null;
            fileData?: ({
                fileUri: string;
                mimeType?: string | null;
            } & {
                [key: string]: unknown;
            }) | null;
            functionCall?: ({
                id?: string | null;
                name: string;
                args?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            }) | null;
            functionResponse?: ({
                id?: string | null;
                name: string;
                response?: {
                    [key: string]: unknown;
                } | null;
                parts?: ({
                    inlineData?: ({
                        mimeType: string;
                        data: string;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                    fileData?: ({
                        fileUri: string;
                        mimeType?: string | null;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                } & {
                    [key: string]: unknown;
                })[] | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        FunctionDeclaration: {
            name: string;
            description?: string | null;
            parameters?: {
                [key: string]: unknown;
            } | null;
            parametersJsonSchema?: {
                [key: string]: unknown;
            } | null;
        } & {
            [key: string]: unknown;
        };
        EmbedContentRequest: {
            content: {
                parts: {
                    text: string;
                }[];
            } & {
                [key: string]: unknown;
            };
            outputDimensionality?: number | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        BatchEmbedContentsRequest: {
            requests: ({
                content: {
                    parts: {
                        text: string;
                    }[];
                } & {
                    [key: string]: unknown;
                };
                outputDimensionality?: number | null;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        EmbeddingsRequest: ({
            model?: string;
            /** @description A text, its tokens, or up to 256 of either */
            input: string | string[] | number[] | number[][];
            encoding_format?: ("float" | "base64") | null;
            dimensions?: number | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        ModerationRequest: {
            /** @description The default is the first moderation model that can be called */
            model?: string | null;
            /** @description A text, up to 256 texts, or the parts of one input */
            input: string | string[] | ({
                /** @constant */
                type: "text";
                text: string;
            } | {
                /** @constant */
                type: "image_url";
                image_url: {
                    url: string;
                };
            })[];
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        RerankRequest: ({
            model?: string;
            query: string;
            /** @description Texts, objects with a text, or objects that have one of the rank_fields */
            documents: (string | {
                [key: string]: unknown;
            })[];
            /** @description The number of results; the default is all */
            top_n?: number | null;
            /** @description Results have their document; the default is false */
            return_documents?: boolean | null;
            /** @description The fields of objects that are ranked */
            rank_fields?: string[] | null;
            /** @description Longer documents are cut, by models that do that */
            max_tokens_per_doc?: number | null;
            /** @description Models to try in this order, after `model`, which may then be absent; the one that answers is charged */
            models?: string[] | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        }) | unknown | unknown;
        ImageRequest: {
            /** @description provider/model */
            model: string;
            prompt: string;
            n?: number | null;
            /** @description `auto`, as without it: the model's own size */
            size?: string | null;
            /** @description Default: `url`; for OpenAI's GPT image models, and edits by `local/image`, `b64_json`, as in OpenAI's own API */
            response_format?: ("url" | "b64_json") | null;
            /** @description Callers by x402 only: the eligible token mint that receives the buyback. Any other, or one with a key, is 400 */
            buyback_token?: string | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        ImageEditRequest: {
            /** @description provider/model */
            model: string;
            prompt: string;
            n?: number | null;
            /** @description `auto`, as without it: the model's own size */
            size?: string | null;
            /** @description Default: `url`; for OpenAI's GPT image models, and edits by `local/image`, `b64_json`, as in OpenAI's own API */
            response_format?: ("url" | "b64_json") | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
            images?: (string | {
                image_url?: string | null;
                file_id?: string | null;
            })[] | null;
            image?: (string | {
                image_url?: string | null;
                file_id?: string | null;
            } | (string | {
                image_url?: string | null;
                file_id?: string | null;
            })[]) | null;
            /** @description Transparent where the first image is to be edited */
            mask?: (string | {
                image_url?: string | null;
                file_id?: string | null;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        ImageVariationRequest: {
            /** @description provider/model */
            model: string;
            prompt?: string | null;
            n?: number | null;
            /** @description `auto`, as without it: the model's own size */
            size?: string | null;
            /** @description Default: `url`; for OpenAI's GPT image models, and edits by `local/image`, `b64_json`, as in OpenAI's own API */
            response_format?: ("url" | "b64_json") | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
            /** @description The id of an upload (`upl_...`) or a data URL; as text, or as OpenAI's `image_url` or `file_id` */
            image: string | {
                image_url?: string | null;
                file_id?: string | null;
            };
        } & {
            [key: string]: unknown;
        };
        MediaRequest: {
            /** @description provider/model */
            model: string;
            /** @description The model's own parameters: its `x_input_schema` */
            input: {
                [key: string]: unknown;
            };
            /** @description Callers by x402 only: the eligible token mint that receives the buyback. Any other, or one with a key, is 400 */
            buyback_token?: string | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        SpeechRequest: {
            /** @description provider/model */
            model: string;
            /** @description The text to speak */
            input: string;
            /** @description One of the model's voices; its `x_input_schema` lists them */
            voice?: (string | {
                id: string;
            }) | null;
            /** @description One of the model's formats, such as `mp3` or `wav` */
            response_format?: string | null;
            /** @description `audio` (default): the bytes; `sse`: events with the audio in base64 */
            stream_format?: ("audio" | "sse") | null;
            provider?: components["schemas"]["ProviderPreferences"] | null;
        } & {
            [key: string]: unknown;
        };
        /** @description An upload in parts, of up to 200 MB */
        NewUpload: {
            bytes: number;
            mime: string;
        };
        UploadCompletion: {
            parts?: {
                part_number: number;
                etag: string;
            }[];
        };
        NewKey: {
            name?: string | null;
            scopes?: ("inference" | "manage")[];
            budget?: {
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
            } | null;
            models?: string[] | null;
            expires_at?: number | null;
            limits?: {
                requests_per_minute?: number;
                tokens_per_minute?: number;
                concurrent_requests?: number;
            };
        };
        KeyPatch: {
            name?: string | null;
            scopes?: ("inference" | "manage")[];
            budget?: {
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
            } | null;
            models?: string[] | null;
            expires_at?: number | null;
            limits?: {
                requests_per_minute?: number | null;
                tokens_per_minute?: number | null;
                concurrent_requests?: number | null;
            };
        };
        NewTopup: {
            /** @description From 1.00 to 10000.00, with at most six decimals */
            amount_usd: string;
        };
        ChatResponse: {
            id: string;
            /** @constant */
            object: "chat.completion";
            /** @description unix seconds */
            created: number;
            model: string;
            choices: ({
                index: number;
                message: components["schemas"]["AnswerMessage"];
                logprobs?: ({
                    content?: ({
                        token: string;
                        logprob: number;
                        top_logprobs?: ({
                            token: string;
                            logprob: number;
                        } & {
                            [key: string]: unknown;
                        })[] | null;
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description `stop`, `length`, `tool_calls`, `content_filter`, or the provider's own */
                finish_reason: string | null;
            } & {
                [key: string]: unknown;
            })[];
            usage: components["schemas"]["Usage"];
        } & {
            [key: string]: unknown;
        };
        AnswerMessage: {
            /** @constant */
            role: "assistant";
            content: string | null;
            refusal?: string | null;
            name?: string | null;
            tool_calls?: components["schemas"]["ToolCall"][] | null;
            /** @description What the model thought, of models that show it */
            reasoning_content?: string | null;
            /** @description The same with the provider's signatures; send it back unchanged with the next turn */
            reasoning_details?: ({
                type: string;
            } & {
                [key: string]: unknown;
            })[] | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The tokens that are charged; the parts are included in the sums */
        Usage: {
            prompt_tokens: number;
            completion_tokens?: number;
            total_tokens: number;
            /**
             * @description What the call was charged
             * @example 12.5
             */
            cost_usd?: string;
            prompt_tokens_details?: ({
                /** @description Read from the provider's cache */
                cached_tokens?: number | null;
                /** @description Written to it */
                cache_write_tokens?: number | null;
                audio_tokens?: number | null;
            } & {
                [key: string]: unknown;
            }) | null;
            completion_tokens_details?: ({
                reasoning_tokens?: number | null;
                audio_tokens?: number | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The data of one event. After the last chunk comes `[DONE]`; a failure is an event with an `Error` */
        ChatChunk: {
            id: string;
            /** @constant */
            object: "chat.completion.chunk";
            /** @description unix seconds */
            created: number;
            model: string;
            choices: ({
                index: number;
                delta: {
                    /**
                     * @description Only in the first
                     * @constant
                     */
                    role?: "assistant";
                    content?: string | null;
                    refusal?: string | null;
                    tool_calls?: ({
                        index: number;
                        id?: string;
                        type?: string;
                        function?: {
                            name?: string | null;
                            arguments?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                    /** @description What the model thought, of models that show it */
                    reasoning_content?: string | null;
                    /** @description The same with the provider's signatures; send it back unchanged with the next turn */
                    reasoning_details?: ({
                        type: string;
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                } & {
                    [key: string]: unknown;
                };
                logprobs?: ({
                    content?: ({
                        token: string;
                        logprob: number;
                        top_logprobs?: ({
                            token: string;
                            logprob: number;
                        } & {
                            [key: string]: unknown;
                        })[] | null;
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description `stop`, `length`, `tool_calls`, `content_filter`, or the provider's own */
                finish_reason: string | null;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Of the last chunk, whose `choices` is empty */
            usage?: components["schemas"]["Usage"] | null;
        } & {
            [key: string]: unknown;
        };
        Error: {
            error: {
                message: string;
                /** @enum {string} */
                type: "invalid_request_error" | "image_generation_user_error" | "authentication_error" | "insufficient_quota" | "permission_error" | "not_found_error" | "conflict_error" | "rate_limit_error" | "server_error";
                /**
                 * @description The descriptions of the responses say what each means
                 * @enum {string}
                 */
                code: "invalid_value" | "model_not_supported" | "context_length_exceeded" | "string_above_max_length" | "content_policy_violation" | "content_filter" | "invalid_prompt" | "invalid_image" | "invalid_image_format" | "invalid_image_url" | "invalid_base64_image" | "image_too_large" | "image_too_small" | "image_content_policy_violation" | "unsupported_parameter" | "unsupported_value" | "invalid_function_parameters" | "invalid_json_schema" | "invalid_encrypted_content" | "tool_use_failed" | "json_validate_failed" | "moderation_blocked" | "invalid_api_key" | "key_expired" | "insufficient_balance" | "budget_exceeded" | "account_frozen" | "insufficient_scope" | "model_not_allowed" | "cross_site_request" | "model_not_found" | "unknown_url" | "not_found" | "upload_not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "upload_expired" | "upload_deleted" | "file_expired" | "length_required" | "request_too_large" | "unsupported_media_type" | "expectation_failed" | "upgrade_required" | "rate_limit_exceeded" | "headers_too_large" | "internal_error" | "upstream_error" | "no_capacity" | "generation_in_progress" | "upstream_timeout";
                /** @description The field at fault */
                param: string | null;
            };
            request_id: string;
        };
        CompletionResponse: {
            id: string;
            /** @constant */
            object: "text_completion";
            /** @description unix seconds */
            created: number;
            model: string;
            choices: ({
                text: string;
                index: number;
                logprobs: null;
                finish_reason: string | null;
            } & {
                [key: string]: unknown;
            })[];
            usage: components["schemas"]["Usage"];
        } & {
            [key: string]: unknown;
        };
        /** @description The data of one event; after the last comes `[DONE]` */
        CompletionChunk: {
            id: string;
            /** @constant */
            object: "text_completion";
            /** @description unix seconds */
            created: number;
            model: string;
            choices: ({
                text: string;
                index: number;
                logprobs: null;
                finish_reason: string | null;
            } & {
                [key: string]: unknown;
            })[];
            usage?: components["schemas"]["Usage"] | null;
        } & {
            [key: string]: unknown;
        };
        MessagesAnswer: {
            id: string;
            /** @constant */
            type: "message";
            /** @constant */
            role: "assistant";
            model: string;
            content: components["schemas"]["OutputBlock"][];
            /** @description `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `refusal`, or another of the provider */
            stop_reason: string | null;
            stop_sequence: string | null;
            usage: components["schemas"]["MessagesUsage"];
        } & {
            [key: string]: unknown;
        };
        OutputBlock: components["schemas"]["TextBlock"] | components["schemas"]["ToolUseBlock"] | components["schemas"]["ThinkingBlock"] | components["schemas"]["RedactedThinkingBlock"];
        MessagesUsage: {
            /** @description Without those of the cache */
            input_tokens: number;
            output_tokens: number;
            cache_creation_input_tokens?: number | null;
            cache_read_input_tokens?: number | null;
        } & {
            [key: string]: unknown;
        };
        /** @description The data of one event, whose name is its `type` */
        MessagesEvent: ({
            /** @constant */
            type: "message_start";
            message: components["schemas"]["MessagesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "content_block_start";
            index: number;
            content_block: components["schemas"]["OutputBlock"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "content_block_delta";
            index: number;
            delta: components["schemas"]["MessagesDelta"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "content_block_stop";
            index: number;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "message_delta";
            delta: {
                stop_reason: string | null;
                stop_sequence: string | null;
            } & {
                [key: string]: unknown;
            };
            usage: {
                output_tokens: number;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "message_stop";
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "ping";
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "error";
            error: {
                type: string;
                message: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        });
        MessagesDelta: ({
            /** @constant */
            type: "text_delta";
            text: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "input_json_delta";
            partial_json: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "thinking_delta";
            thinking: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "signature_delta";
            signature: string;
        } & {
            [key: string]: unknown;
        });
        MessagesError: {
            /** @constant */
            type: "error";
            error: {
                /** @enum {string} */
                type: "invalid_request_error" | "authentication_error" | "billing_error" | "permission_error" | "not_found_error" | "rate_limit_error" | "api_error" | "overloaded_error" | "timeout_error";
                message: string;
            };
            request_id: string;
        };
        ResponsesAnswer: {
            id: string;
            /** @constant */
            object: "response";
            /** @description unix seconds */
            created_at: number;
            model: string;
            /** @enum {string} */
            status: "in_progress" | "completed" | "incomplete" | "failed";
            error: ({
                code: string;
                message: string;
            } & {
                [key: string]: unknown;
            }) | null;
            incomplete_details: ({
                reason: string;
            } & {
                [key: string]: unknown;
            }) | null;
            output: components["schemas"]["OutputItem"][];
            previous_response_id?: string | null;
            /** @description Always false: the provider stores nothing. This service stores the response unless the request said `false` */
            store?: boolean;
            /** @description null until the end */
            usage: components["schemas"]["ResponsesUsage"] | null;
        } & {
            [key: string]: unknown;
        };
        OutputItem: components["schemas"]["OutputMessage"] | components["schemas"]["FunctionCallItem"] | components["schemas"]["CustomToolCallItem"] | components["schemas"]["OtherCallItem"] | components["schemas"]["ReasoningItem"];
        OutputMessage: {
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message";
            /** @constant */
            role: "assistant";
            /** @enum {string} */
            status: "in_progress" | "completed" | "incomplete";
            content: components["schemas"]["OutputPart"][];
        } & {
            [key: string]: unknown;
        };
        OutputPart: components["schemas"]["OutputText"] | components["schemas"]["OutputRefusal"];
        ResponsesUsage: {
            input_tokens: number;
            input_tokens_details: {
                cached_tokens: number;
            } & {
                [key: string]: unknown;
            };
            output_tokens: number;
            output_tokens_details: {
                reasoning_tokens: number;
            } & {
                [key: string]: unknown;
            };
            total_tokens: number;
            /**
             * @description What the call was charged
             * @example 12.5
             */
            cost_usd?: string;
        } & {
            [key: string]: unknown;
        };
        /** @description The data of one event, whose name is its `type`; OpenAI's models also send others */
        ResponsesEvent: ({
            /** @constant */
            type: "response.created";
            sequence_number: number;
            response: components["schemas"]["ResponsesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.in_progress";
            sequence_number: number;
            response: components["schemas"]["ResponsesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.output_item.added";
            sequence_number: number;
            output_index: number;
            item: components["schemas"]["OutputItem"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.output_item.done";
            sequence_number: number;
            output_index: number;
            item: components["schemas"]["OutputItem"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.content_part.added";
            sequence_number: number;
            item_id: string;
            output_index: number;
            content_index: number;
            part: components["schemas"]["OutputPart"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.content_part.done";
            sequence_number: number;
            item_id: string;
            output_index: number;
            content_index: number;
            part: components["schemas"]["OutputPart"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.output_text.delta";
            sequence_number: number;
            item_id: string;
            output_index: number;
            content_index: number;
            delta: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.output_text.done";
            sequence_number: number;
            item_id: string;
            output_index: number;
            content_index: number;
            text: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.refusal.delta";
            sequence_number: number;
            item_id: string;
            output_index: number;
            content_index: number;
            delta: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.function_call_arguments.delta";
            sequence_number: number;
            item_id: string;
            output_index: number;
            delta: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.function_call_arguments.done";
            sequence_number: number;
            item_id: string;
            output_index: number;
            arguments: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.reasoning_summary_text.delta";
            sequence_number: number;
            item_id: string;
            output_index: number;
            summary_index: number;
            delta: string;
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.completed";
            sequence_number: number;
            response: components["schemas"]["ResponsesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.incomplete";
            sequence_number: number;
            response: components["schemas"]["ResponsesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "response.failed";
            sequence_number: number;
            response: components["schemas"]["ResponsesAnswer"];
        } & {
            [key: string]: unknown;
        }) | ({
            /** @constant */
            type: "error";
            sequence_number: number;
            code: string | null;
            message: string;
            param: string | null;
        } & {
            [key: string]: unknown;
        });
        InputItemList: {
            /** @constant */
            object: "list";
            data: ({
                id: string;
                type: string;
            } & {
                [key: string]: unknown;
            })[];
            first_id: string | null;
            last_id: string | null;
            has_more: boolean;
        };
        /** @description Of a stream: one event, or one element of the array */
        GeminiAnswer: {
            candidates?: ({
                content?: components["schemas"]["GeminiContent"];
                /** @description `STOP`, `MAX_TOKENS`, `SAFETY`, or another of Google's */
                finishReason?: string;
                finishMessage?: string;
                index?: number;
            } & {
                [key: string]: unknown;
            })[];
            usageMetadata?: {
                promptTokenCount?: number;
                candidatesTokenCount?: number;
                totalTokenCount?: number;
                cachedContentTokenCount?: number;
                thoughtsTokenCount?: number;
            } & {
                [key: string]: unknown;
            };
            modelVersion?: string;
            responseId?: string;
        } & {
            [key: string]: unknown;
        };
        GeminiError: {
            error: {
                /** @description The status */
                code: number;
                message: string;
                /** @enum {string} */
                status: "INVALID_ARGUMENT" | "UNAUTHENTICATED" | "FAILED_PRECONDITION" | "PERMISSION_DENIED" | "NOT_FOUND" | "ABORTED" | "RESOURCE_EXHAUSTED" | "INTERNAL" | "UNAVAILABLE" | "DEADLINE_EXCEEDED";
            };
        };
        EmbedContentResponse: {
            embedding: components["schemas"]["ContentEmbedding"];
            usageMetadata: {
                promptTokenCount: number;
            };
        };
        ContentEmbedding: {
            values: number[];
        };
        BatchEmbedContentsResponse: {
            embeddings: components["schemas"]["ContentEmbedding"][];
            usageMetadata: {
                promptTokenCount: number;
            };
        };
        GeminiModelList: {
            models: components["schemas"]["GeminiModel"][];
            nextPageToken?: string;
        } & {
            [key: string]: unknown;
        };
        GeminiModel: {
            /** @description models/provider/model, or the provider's own name */
            name: string;
            displayName: string;
            inputTokenLimit: number;
            outputTokenLimit: number;
            supportedGenerationMethods: string[];
        } & {
            [key: string]: unknown;
        };
        EmbeddingsResponse: {
            /** @constant */
            object: "list";
            model: string;
            data: {
                /** @constant */
                object: "embedding";
                index: number;
                embedding: number[] | string;
            }[];
            usage: components["schemas"]["Usage"];
        };
        ModerationResponse: {
            id: string;
            model: string;
            /** @description One for each text, or one for the parts of an input */
            results: {
                flagged: boolean;
                categories: {
                    [key: string]: boolean | null;
                };
                category_scores: {
                    [key: string]: number | null;
                };
                category_applied_input_types?: {
                    [key: string]: string[];
                };
            }[];
        };
        RerankResponse: {
            id: string;
            /** @constant */
            object: "list";
            model: string;
            /** @description The most relevant first */
            results: {
                /** @description Of the document in the request */
                index: number;
                relevance_score: number;
                /** @description With `return_documents`: the text, or the object as it was */
                document?: {
                    [key: string]: unknown;
                };
            }[];
            meta: {
                api_version: {
                    version: string;
                };
                billed_units: {
                    search_units?: number;
                    input_tokens?: number;
                };
            };
            usage: {
                search_units?: number;
                prompt_tokens?: number;
                total_tokens?: number;
            };
        };
        ImageResponse: {
            /** @description unix seconds */
            created: number;
            /** @description unix seconds; when the files are deleted, 24 hours after creation */
            expires_at: number;
            data: ({
                /** Format: uri */
                url?: string;
                b64_json?: string;
                revised_prompt?: string;
                /** @description unix seconds */
                expires_at: number;
            } & {
                [key: string]: unknown;
            })[];
            /** @description The tokens that the provider counted, if it did; the cost is by image */
            usage?: {
                [key: string]: unknown;
            };
        };
        PaymentRequired: {
            /** @constant */
            x402Version: 2;
            /**
             * @description Why: no payment came, or what came was none for this request
             * @example PAYMENT-SIGNATURE header is required
             */
            error: string;
            resource: {
                url: string;
                /** @example One call of local/image */
                description: string;
                /** @example application/json */
                mimeType: string;
            };
            accepts: {
                /** @constant */
                scheme: "exact";
                /**
                 * @description CAIP-2
                 * @example solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp
                 */
                network: string;
                /**
                 * @description The mint of USDC
                 * @example EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v
                 */
                asset: string;
                /**
                 * @description Units of it: of 1 USD there are 1,000,000
                 * @example 40000
                 */
                amount: string;
                /** @description The wallet that is paid */
                payTo: string;
                /**
                 * @description How long a payment may be underway once it is signed
                 * @example 60
                 */
                maxTimeoutSeconds: number;
                extra: {
                    /** @description Who pays the network's fee */
                    feePayer: string;
                    /** @description Names the quote; the payment carries it */
                    memo: string;
                    /** @constant */
                    paymentFlow: "upfront";
                };
            }[];
        };
        MediaResponse: {
            id: string;
            /** @constant */
            object: "media.generation";
            /** @description unix seconds */
            created: number;
            model: string;
            /** @description unix seconds */
            expires_at: number;
            /** @description What the model says beside its files, such as a transcript */
            output: {
                [key: string]: unknown;
            };
            files: ({
                /** Format: uri */
                url: string;
                content_type: string;
                bytes: number;
                /** @description unix seconds */
                expires_at: number;
            } & {
                [key: string]: unknown;
            })[];
        };
        /** @description The data of one event; the tokens are an estimate */
        SpeechEvent: {
            /** @constant */
            type: "speech.audio.delta";
            /** @description base64 */
            audio: string;
        } | {
            /** @constant */
            type: "speech.audio.done";
            usage: {
                input_tokens: number;
                output_tokens: number;
                total_tokens: number;
            };
        };
        /** @description What the model says of the recording */
        Transcript: {
            text: string;
            language?: string;
            /** @description Seconds */
            duration?: number;
            segments?: ({
                start: number;
                end: number;
                text: string;
            } & {
                [key: string]: unknown;
            })[];
        } & {
            [key: string]: unknown;
        };
        Upload: {
            /** @description upl_... */
            id: string;
            /** @constant */
            object: "upload";
            /** @description Signed, for 15 minutes at most; null unless active */
            url: string | null;
            mime: string;
            /** @enum {string} */
            kind: "image" | "video" | "audio";
            bytes: number;
            /** @description unix seconds */
            created_at: number;
            /** @description unix seconds, 24 hours after the upload; of a pending one, when it can no longer be completed */
            expires_at: number;
            /** @enum {string} */
            status: "pending" | "active" | "expired" | "deleted";
            /** @description Charged once, when the upload becomes active */
            cost_usd: string;
            part_size?: number;
            /** @description unix seconds */
            links_expire_at?: number;
            /** @description For a pending upload in parts */
            part_urls?: {
                part_number: number;
                /**
                 * Format: uri
                 * @description PUT this part here, until `links_expire_at`
                 */
                url: string;
                /** @description The exact size of this part */
                bytes: number;
            }[];
            /**
             * Format: uri
             * @description POST here once all parts are sent
             */
            complete_url?: string;
        };
        UploadList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Upload"][];
            has_more: boolean;
            /** @description Pass it as `after` */
            next: string | null;
        };
        DeletedUpload: {
            id: string;
            /** @constant */
            deleted: true;
        };
        ModelList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Model"][];
        };
        Model: {
            /** @description provider/model */
            id: string;
            /** @constant */
            object: "model";
            /** @description unix seconds */
            created: number;
            owned_by: string;
            name: string;
            /** @description one sentence, or empty */
            description: string;
            /** @enum {string} */
            type: "text" | "image" | "video" | "audio" | "embeddings" | "other";
            endpoint: string;
            context_length: number;
            max_output_tokens?: number;
            features: string[];
            /** @description what a request may contain */
            input_modalities: ("text" | "image" | "file" | "audio" | "video" | "embeddings" | "moderation" | "rerank")[];
            output_modalities: ("text" | "image" | "file" | "audio" | "video" | "embeddings" | "moderation" | "rerank")[];
            /** @description parameters that every upstream of the model takes: of a chat request, or of `x_input_schema` */
            supported_parameters: string[];
            /** @description null: it does not reason */
            reasoning: {
                /** @description no effort turns reasoning off */
                mandatory: boolean;
                /** @description values of `reasoning_effort`; empty if it cannot be chosen */
                supported_efforts: string[];
                /** @description null: the provider does not say */
                default_effort: string | null;
            } | null;
            /** @description unix seconds from which its provider calls it deprecated, possibly in the future; it is still served */
            deprecated_at: number | null;
            x_elite_discount_bps: number;
            x_pricing: {
                [key: string]: {
                    unit: string;
                    /** @description USD per unit */
                    list_usd: string;
                    /** @description USD per unit, for Elite accounts */
                    elite_usd: string;
                };
            };
            /** @description JSON Schema of the parameters, for models of images and media */
            x_input_schema?: {
                [key: string]: unknown;
            };
        };
        MessagesModelList: {
            data: components["schemas"]["MessagesModel"][];
            has_more: boolean;
            first_id: string | null;
            last_id: string | null;
        } & {
            [key: string]: unknown;
        };
        MessagesModel: {
            /** @constant */
            type: "model";
            id: string;
            display_name: string;
            /** @description RFC 3339 */
            created_at: string;
            max_input_tokens: number;
            max_tokens: number;
        } & {
            [key: string]: unknown;
        };
        Balance: {
            /** @constant */
            object: "balance";
            /**
             * @description Credits less decided costs
             * @example 12.5
             */
            balance_usd: string;
            /**
             * @description What calls may still hold
             * @example 12.5
             */
            available_usd: string;
            /**
             * @description Held for calls that run
             * @example 12.5
             */
            held_usd: string;
            /** @description The threshold of the balance alert */
            alert_below_usd: string | null;
            /** @description Since when `available_usd` has been below the threshold, as a look every 15 seconds found it */
            alert: {
                /** @description unix seconds */
                since: number;
            } | null;
        };
        Account: {
            id: string;
            /** @constant */
            object: "account";
            name: string;
            /** @enum {string} */
            tier: "standard" | "elite";
            frozen: boolean;
            /** @description The threshold of the balance alert */
            alert_below_usd: string | null;
            /** @description Since when `available_usd` has been below the threshold, as a look every 15 seconds found it */
            alert: {
                /** @description unix seconds */
                since: number;
            } | null;
            /** @description unix seconds */
            created_at: number;
        };
        UsageSums: {
            /** @constant */
            object: "usage";
            /**
             * Format: date
             * @example 2026-11-23
             */
            day?: string;
            model?: string | null;
            key?: string | null;
            endpoint?: string | null;
            /** @description Calls and uploads that ended */
            calls: number;
            failed: number;
            input_tokens: number;
            output_tokens: number;
            /** @description Of the input tokens: read from a cache */
            cached_tokens: number;
            /** @description Of what is not counted in tokens: images, seconds, characters */
            units: number;
            /**
             * @description Refunds of the same days are subtracted
             * @example 12.5
             */
            cost_usd: string;
        };
        Invoice: {
            /** @constant */
            object: "invoice";
            /** @example 2026-11 */
            month: string;
            lines: {
                /**
                 * Format: date
                 * @example 2026-11-23
                 */
                day: string;
                model: string | null;
                /** @description Calls and uploads that ended */
                calls: number;
                input_tokens: number;
                output_tokens: number;
                /** @description Of the input tokens: read from a cache */
                cached_tokens: number;
                /** @description Of what is not counted in tokens: images, seconds, characters */
                units: number;
                /**
                 * @description Refunds of the same days are subtracted
                 * @example 12.5
                 */
                cost_usd: string;
            }[];
            /** @example 12.5 */
            total_usd: string;
        };
        Request: {
            id: string;
            /** @constant */
            object: "request";
            key: string | null;
            endpoint: string | null;
            model: string | null;
            /** @enum {string} */
            status: "succeeded" | "failed" | "cancelled";
            /** @description The code that was answered */
            error: string | null;
            /** @example 12.5 */
            cost_usd: string;
            /** @description The cost was given back to the balance */
            refunded: boolean;
            /** @description Counts by price key */
            usage: {
                [key: string]: number;
            };
            /** @description The provider reported no usage */
            estimated: boolean;
            /** @description Null if no worker took the call */
            streamed: boolean | null;
            /** @description Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter` or `error`; null if it did not */
            finish_reason: string | null;
            input_tokens: number;
            output_tokens: number;
            cached_tokens: number;
            /** @description When the call ended */
            created_at: number;
            queue_ms: number | null;
            first_token_ms: number | null;
            total_ms: number | null;
        };
        RequestDetail: {
            id: string;
            /** @constant */
            object: "request";
            key: string | null;
            endpoint: string | null;
            model: string | null;
            /**
             * @description `refused`: it was answered with an error before it became a call; found for 24 hours, and in no list
             * @enum {string}
             */
            status: "succeeded" | "failed" | "cancelled" | "refused";
            /** @description The code that was answered */
            error: string | null;
            /** @example 12.5 */
            cost_usd: string;
            /** @description The cost was given back to the balance */
            refunded: boolean;
            /** @description Counts by price key */
            usage: {
                [key: string]: number;
            };
            /** @description The provider reported no usage */
            estimated: boolean;
            /** @description Null if no worker took the call */
            streamed: boolean | null;
            /** @description Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter` or `error`; null if it did not */
            finish_reason: string | null;
            input_tokens: number;
            output_tokens: number;
            cached_tokens: number;
            /** @description When the call ended */
            created_at: number;
            queue_ms: number | null;
            first_token_ms: number | null;
            total_ms: number | null;
            /** @description Of the answer to a refused request; null for a call */
            http_status: number | null;
            attempts: {
                upstream: string | null;
                model?: string;
                started_ms: number | null;
                duration_ms: number | null;
                /** @enum {string} */
                outcome: "succeeded" | "failed" | "refused" | "busy" | "timeout" | "cancelled";
                status?: number;
                code?: string;
            }[];
        };
        Generation: {
            id: string;
            /** @description The id of the answer, if the provider made it */
            upstream_id: string | null;
            model: string | null;
            provider_name: string | null;
            api_type: string | null;
            /** @description Null if no worker took the call */
            streamed: boolean | null;
            /** @description Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter` or `error`; null if it did not */
            finish_reason: string | null;
            created_at: string;
            total_cost: number;
            usage: number;
            upstream_inference_cost: null;
            /** @constant */
            is_byok: false;
            cancelled: boolean;
            origin: string;
            latency: number | null;
            generation_time: number | null;
            tokens_prompt: number;
            tokens_completion: number;
            native_tokens_prompt: number;
            native_tokens_completion: number;
            native_tokens_cached: number;
            cache_discount: null;
            app_id: null;
            moderation_latency: null;
            native_finish_reason: null;
            native_tokens_completion_images: null;
            native_tokens_reasoning: null;
            num_media_prompt: null;
            num_input_audio_prompt: null;
            num_media_completion: null;
            num_search_results: null;
            external_user: null;
            router: null;
            provider_responses: null;
        };
        OwnKey: {
            /** @description key_... */
            id: string;
            /** @constant */
            object: "key";
            account: {
                id: string;
                name: string;
                /** @enum {string} */
                tier: "standard" | "elite";
                frozen: boolean;
            };
            name: string | null;
            /**
             * @description What may be shown of the secret
             * @example live_Ab3...
             */
            prefix: string;
            /** @description `inference` calls models and sees itself; `manage` sees and changes the account */
            scopes: ("inference" | "manage")[];
            limits: {
                /** @description Null: the configured limit */
                requests_per_minute: number | null;
                /** @description Null: the configured limit */
                tokens_per_minute: number | null;
                /** @description Null: the configured limit */
                concurrent_requests: number | null;
            };
            budget: {
                /** @example 12.5 */
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
                /**
                 * @description By calls that have ended
                 * @example 12.5
                 */
                spent_usd: string;
                resets_at: number | null;
            } | null;
            /** @description Keys whose budgets its calls count against, too: those that made it and had one */
            shares_budget_of: string[];
            /** @description Ids of models, or `provider/*`; null: all */
            models: string[] | null;
            expires_at: number | null;
            /** @description unix seconds */
            created_at: number;
            last_used_at: number | null;
            revoked_at: number | null;
            /** @description What its calls cost; days are UTC */
            usage: {
                /** @example 12.5 */
                day_usd: string;
                /** @example 12.5 */
                month_usd: string;
                /** @example 12.5 */
                total_usd: string;
            };
        };
        KeyList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ListedKey"][];
            has_more: boolean;
            /** @description Pass it as `after` */
            next: string | null;
        };
        ListedKey: {
            /** @description key_... */
            id: string;
            /** @constant */
            object: "key";
            account: string;
            name: string | null;
            /**
             * @description What may be shown of the secret
             * @example live_Ab3...
             */
            prefix: string;
            /** @description `inference` calls models and sees itself; `manage` sees and changes the account */
            scopes: ("inference" | "manage")[];
            limits: {
                /** @description Null: the configured limit */
                requests_per_minute: number | null;
                /** @description Null: the configured limit */
                tokens_per_minute: number | null;
                /** @description Null: the configured limit */
                concurrent_requests: number | null;
            };
            budget: {
                /** @example 12.5 */
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
                /**
                 * @description By calls that have ended
                 * @example 12.5
                 */
                spent_usd: string;
                resets_at: number | null;
            } | null;
            /** @description Keys whose budgets its calls count against, too: those that made it and had one */
            shares_budget_of: string[];
            /** @description Ids of models, or `provider/*`; null: all */
            models: string[] | null;
            expires_at: number | null;
            /** @description unix seconds */
            created_at: number;
            last_used_at: number | null;
            revoked_at: number | null;
        };
        NewKeyWithSecret: {
            /** @description key_... */
            id: string;
            /** @constant */
            object: "key";
            account: string;
            name: string | null;
            /**
             * @description What may be shown of the secret
             * @example live_Ab3...
             */
            prefix: string;
            /** @description `inference` calls models and sees itself; `manage` sees and changes the account */
            scopes: ("inference" | "manage")[];
            limits: {
                /** @description Null: the configured limit */
                requests_per_minute: number | null;
                /** @description Null: the configured limit */
                tokens_per_minute: number | null;
                /** @description Null: the configured limit */
                concurrent_requests: number | null;
            };
            /** @description What its calls may cost in each period; periods are UTC, weeks begin on Monday */
            budget: {
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
            } | null;
            /** @description Keys whose budgets its calls count against, too: those that made it and had one */
            shares_budget_of: string[];
            /** @description Ids of models, or `provider/*`; null: all */
            models: string[] | null;
            expires_at: number | null;
            /** @description unix seconds */
            created_at: number;
            last_used_at: number | null;
            revoked_at: number | null;
            /** @description The secret, `live_...`, only this once */
            key: string;
        };
        Key: {
            /** @description key_... */
            id: string;
            /** @constant */
            object: "key";
            account: string;
            name: string | null;
            /**
             * @description What may be shown of the secret
             * @example live_Ab3...
             */
            prefix: string;
            /** @description `inference` calls models and sees itself; `manage` sees and changes the account */
            scopes: ("inference" | "manage")[];
            limits: {
                /** @description Null: the configured limit */
                requests_per_minute: number | null;
                /** @description Null: the configured limit */
                tokens_per_minute: number | null;
                /** @description Null: the configured limit */
                concurrent_requests: number | null;
            };
            /** @description What its calls may cost in each period; periods are UTC, weeks begin on Monday */
            budget: {
                limit_usd: string;
                /** @enum {string} */
                period: "day" | "week" | "month" | "total";
            } | null;
            /** @description Keys whose budgets its calls count against, too: those that made it and had one */
            shares_budget_of: string[];
            /** @description Ids of models, or `provider/*`; null: all */
            models: string[] | null;
            expires_at: number | null;
            /** @description unix seconds */
            created_at: number;
            last_used_at: number | null;
            revoked_at: number | null;
        };
        Topup: {
            /** @example top_2kT9vQ4mXw7pLr3sZb8n */
            id: string;
            /** @constant */
            object: "topup";
            /**
             * @description Completed once something was credited; a payment that comes after the expiry is credited, too
             * @enum {string}
             */
            status: "pending" | "completed" | "expired";
            /**
             * @description What was asked for
             * @example 12.5
             */
            amount_usd: string;
            /**
             * @description What arrived and was credited
             * @example 12.5
             */
            received_usd: string;
            /** @description The signature of the first payment */
            transaction: string | null;
            /** @description For a link or a QR code: a transfer request that wallets read */
            solana_pay_url: string;
            /** @description Made for this top-up; a payment names it among its accounts */
            reference: string;
            /** @description The wallet that is paid */
            recipient: string;
            /** @description unix seconds */
            created_at: number;
            /** @description unix seconds */
            expires_at: number;
        };
        TopupList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Topup"][];
            has_more: boolean;
            /** @description Pass it as `after` */
            next: string | null;
        };
    };
    responses: {
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        CallError400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_api_key`: the API key is missing, unknown or revoked. `key_expired`: the API key's `expires_at` has passed. */
        CallError401: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "www-authenticate": components["headers"]["www-authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
        CallError402: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `account_frozen`: the account is frozen. `insufficient_scope`: the API key lacks the scope that the route asks for, or would give another key more than it has. `model_not_allowed`: the API key is limited to other models. `cross_site_request`: a write under `/dashboard` does not come from the dashboard's own page. */
        CallError403: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        CallError404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `request_timeout`: the body took longer than 60 seconds to arrive. */
        CallError408: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `conflict`: an idempotency key came again with another body, or more is taken back than there is. */
        CallError409: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `upload_expired`: the upload's 24 hours, or the time to complete it, are over. `upload_deleted`: the upload was deleted. `file_expired`: the generated file's 24 hours are over. */
        CallError410: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `request_too_large`: the body is over the limit. */
        CallError413: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `unsupported_media_type`: the body or file is not of an accepted type or encoding. */
        CallError415: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `rate_limit_exceeded`: a limit of the key, the 2,000 open calls of an account, or the tokens that the upstream takes at once are reached. */
        CallError429: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `internal_error`: a defect of the service. */
        CallError500: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `upstream_error`: every upstream of the model failed. */
        CallError502: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `no_capacity`: no worker, no upstream or no store can take the call now, or its worker died. `generation_in_progress`: the work of this Idempotency-Key goes on; repeat the request to wait for it. */
        CallError503: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `upstream_timeout`: the upstream or the call ran out of time. */
        CallError504: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        CallMessagesError400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `invalid_api_key`: the API key is missing, unknown or revoked. `key_expired`: the API key's `expires_at` has passed. */
        CallMessagesError401: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "www-authenticate": components["headers"]["www-authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
        CallMessagesError402: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `account_frozen`: the account is frozen. `insufficient_scope`: the API key lacks the scope that the route asks for, or would give another key more than it has. `model_not_allowed`: the API key is limited to other models. `cross_site_request`: a write under `/dashboard` does not come from the dashboard's own page. */
        CallMessagesError403: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        CallMessagesError404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `request_timeout`: the body took longer than 60 seconds to arrive. */
        CallMessagesError408: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `conflict`: an idempotency key came again with another body, or more is taken back than there is. */
        CallMessagesError409: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `upload_expired`: the upload's 24 hours, or the time to complete it, are over. `upload_deleted`: the upload was deleted. `file_expired`: the generated file's 24 hours are over. */
        CallMessagesError410: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `request_too_large`: the body is over the limit. */
        CallMessagesError413: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `unsupported_media_type`: the body or file is not of an accepted type or encoding. */
        CallMessagesError415: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `rate_limit_exceeded`: a limit of the key, the 2,000 open calls of an account, or the tokens that the upstream takes at once are reached. */
        CallMessagesError429: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `internal_error`: a defect of the service. */
        CallMessagesError500: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `upstream_error`: every upstream of the model failed. */
        CallMessagesError502: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `no_capacity`: no worker, no upstream or no store can take the call now, or its worker died. `generation_in_progress`: the work of this Idempotency-Key goes on; repeat the request to wait for it. */
        CallMessagesError503: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `upstream_timeout`: the upstream or the call ran out of time. */
        CallMessagesError504: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "request-id": components["headers"]["request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["MessagesError"];
            };
        };
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        Error400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_api_key`: the API key is missing, unknown or revoked. `key_expired`: the API key's `expires_at` has passed. */
        Error401: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "www-authenticate": components["headers"]["www-authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        Error404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `internal_error`: a defect of the service. */
        Error500: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `no_capacity`: no worker, no upstream or no store can take the call now, or its worker died. `generation_in_progress`: the work of this Idempotency-Key goes on; repeat the request to wait for it. */
        Error503: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        CallGeminiError400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `invalid_api_key`: the API key is missing, unknown or revoked. `key_expired`: the API key's `expires_at` has passed. */
        CallGeminiError401: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "www-authenticate": components["headers"]["www-authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
        CallGeminiError402: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `account_frozen`: the account is frozen. `insufficient_scope`: the API key lacks the scope that the route asks for, or would give another key more than it has. `model_not_allowed`: the API key is limited to other models. `cross_site_request`: a write under `/dashboard` does not come from the dashboard's own page. */
        CallGeminiError403: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        CallGeminiError404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `request_timeout`: the body took longer than 60 seconds to arrive. */
        CallGeminiError408: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `conflict`: an idempotency key came again with another body, or more is taken back than there is. */
        CallGeminiError409: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `upload_expired`: the upload's 24 hours, or the time to complete it, are over. `upload_deleted`: the upload was deleted. `file_expired`: the generated file's 24 hours are over. */
        CallGeminiError410: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `request_too_large`: the body is over the limit. */
        CallGeminiError413: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `unsupported_media_type`: the body or file is not of an accepted type or encoding. */
        CallGeminiError415: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `rate_limit_exceeded`: a limit of the key, the 2,000 open calls of an account, or the tokens that the upstream takes at once are reached. */
        CallGeminiError429: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `internal_error`: a defect of the service. */
        CallGeminiError500: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `upstream_error`: every upstream of the model failed. */
        CallGeminiError502: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `no_capacity`: no worker, no upstream or no store can take the call now, or its worker died. `generation_in_progress`: the work of this Idempotency-Key goes on; repeat the request to wait for it. */
        CallGeminiError503: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `upstream_timeout`: the upstream or the call ran out of time. */
        CallGeminiError504: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        GeminiError400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        GeminiError404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GeminiError"];
            };
        };
        /** @description `upload_expired`: the upload's 24 hours, or the time to complete it, are over. `upload_deleted`: the upload was deleted. `file_expired`: the generated file's 24 hours are over. */
        Error410: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
        Error402: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `account_frozen`: the account is frozen. `insufficient_scope`: the API key lacks the scope that the route asks for, or would give another key more than it has. `model_not_allowed`: the API key is limited to other models. `cross_site_request`: a write under `/dashboard` does not come from the dashboard's own page. */
        Error403: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `request_timeout`: the body took longer than 60 seconds to arrive. */
        Error408: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `conflict`: an idempotency key came again with another body, or more is taken back than there is. */
        Error409: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `length_required`: a raw upload came without Content-Length. */
        Error411: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `request_too_large`: the body is over the limit. */
        Error413: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `unsupported_media_type`: the body or file is not of an accepted type or encoding. */
        Error415: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `rate_limit_exceeded`: a limit of the key, the 2,000 open calls of an account, or the tokens that the upstream takes at once are reached. */
        Error429: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                "Retry-After": components["headers"]["Retry-After"];
                "x-should-retry": components["headers"]["x-should-retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_value`: a field, header, path or body is malformed or out of range. `model_not_supported`: the model exists, but not for this endpoint or feature. `context_length_exceeded`: prompt and output cap exceed the model's context. `string_above_max_length`: a text is longer than the provider takes. `content_policy_violation`: the provider's content policy forbids the request. `content_filter`: the provider's content filter stopped the request. `invalid_prompt`: the provider's usage policy forbids the prompt. `invalid_image`: the provider cannot read an image. `invalid_image_format`: the provider does not take an image's format. `invalid_image_url`: the provider cannot fetch an image. `invalid_base64_image`: an image's base64 cannot be decoded. `image_too_large`: an image is larger than the provider takes. `image_too_small`: an image is smaller than the provider takes. `image_content_policy_violation`: the provider's content policy forbids an image. `unsupported_parameter`: the provider's model does not take a parameter. `unsupported_value`: the provider's model does not take a parameter's value. `invalid_function_parameters`: a tool's schema is not valid for the provider. `invalid_json_schema`: the schema of the answer is not valid for the provider. `invalid_encrypted_content`: the provider cannot read reasoning sent back to it. `tool_use_failed`: the model called a tool in a way that the provider rejects. `json_validate_failed`: the model's answer does not fit the requested schema. `moderation_blocked`: the provider's moderation stopped an image. */
        ModelsError400: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] | components["schemas"]["MessagesError"] | components["schemas"]["GeminiError"];
            };
        };
        /** @description `model_not_found`: no such model is listed. `unknown_url`: no such route. `not_found`: no such account, key, request or other object of the account. `upload_not_found`: this account has no such upload. */
        ModelsError404: {
            headers: {
                "x-request-id": components["headers"]["x-request-id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] | components["schemas"]["MessagesError"] | components["schemas"]["GeminiError"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Names the request, its charge and its log lines */
        "x-request-id": string;
        /** @description What the request cost, an exact decimal; absent on streams */
        "x-xm-cost-usd": string;
        /** @description Requests a minute of the key */
        "x-ratelimit-limit-requests": number;
        /** @description Requests that the key may make at once */
        "x-ratelimit-remaining-requests": number;
        /** @description Until all requests are available again, such as `12s` */
        "x-ratelimit-reset-requests": string;
        /** @description Tokens a minute of the key */
        "x-ratelimit-limit-tokens": number;
        /** @description Tokens that the key may use at once */
        "x-ratelimit-remaining-tokens": number;
        /** @description Until all tokens are available again, such as `12s` */
        "x-ratelimit-reset-tokens": string;
        /** @description The stored answer of an earlier request with the same Idempotency-Key, whose id `x-request-id` names; it has no rate limits */
        "idempotent-replayed": "true";
        /** @description Hints of the request that the model or its upstream does not take */
        "x-ignored-params": string;
        /** @description The model that answered, of a request with a list of models */
        "x-xm-model": string;
        /** @description How to send a key */
        "www-authenticate": "Bearer";
        /** @description Sent where a retry cannot succeed, or would be charged twice; official clients obey it */
        "x-should-retry": "false";
        /** @description Seconds to wait before the next try */
        "Retry-After": number;
        /** @description The same as `x-request-id` */
        "request-id": string;
        /** @description Who counted */
        "x-xm-token-count": "provider" | "estimate";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    createChatCompletion: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body joins the running work or gets its stored answer, for 24 hours; another body is a 409. A stream ignores it */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatRequest"];
            };
        };
        responses: {
            /** @description The answer; with `stream: true` server-sent events whose last chunk carries usage */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                    "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                    "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                    "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                    "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                    "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                    "idempotent-replayed": components["headers"]["idempotent-replayed"];
                    "x-ignored-params": components["headers"]["x-ignored-params"];
                    "x-xm-model": components["headers"]["x-xm-model"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "chatcmpl-local-c53dc183",
                     *       "created": 1795000000,
                     *       "model": "local/chat",
                     *       "system_fingerprint": "fp_local",
                     *       "object": "chat.completion",
                     *       "choices": [
                     *         {
                     *           "index": 0,
                     *           "message": {
                     *             "role": "assistant",
                     *             "content": "You said: \"Say hello.\". This is a model for tests: it repeats what it reads.",
                     *             "refusal": null
                     *           },
                     *           "logprobs": null,
                     *           "finish_reason": "stop"
                     *         }
                     *       ],
                     *       "usage": {
                     *         "prompt_tokens": 5,
                     *         "completion_tokens": 15,
                     *         "total_tokens": 20,
                     *         "cost_usd": "0.0000065"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ChatResponse"];
                    "text/event-stream": components["schemas"]["ChatChunk"];
                };
            };
            400: components["responses"]["CallError400"];
            401: components["responses"]["CallError401"];
            402: components["responses"]["CallError402"];
            403: components["responses"]["CallError403"];
            404: components["responses"]["CallError404"];
            408: components["responses"]["CallError408"];
            409: components["responses"]["CallError409"];
            410: components["responses"]["CallError410"];
            413: components["responses"]["CallError413"];
            415: components["responses"]["CallError415"];
            429: components["responses"]["CallError429"];
            500: components["responses"]["CallError500"];
            502: components["responses"]["CallError502"];
            503: components["responses"]["CallError503"];
            504: components["responses"]["CallError504"];
        };
    };
    createEmbeddings: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body joins the running work or gets its stored answer, for 24 hours; another body is a 409. A stream ignores it */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EmbeddingsRequest"];
            };
        };
        responses: {
            /** @description The embeddings */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                    "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                    "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                    "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                    "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                    "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                    "idempotent-replayed": components["headers"]["idempotent-replayed"];
                    "x-xm-model": components["headers"]["x-xm-model"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "object": "list",
                     *       "model": "local/embeddings",
                     *       "data": [
                     *         {
                     *           "object": "embedding",
                     *           "index": 0,
                     *           "embedding": [
                     *             0,
                     *             -0.4472135901451111,
                     *             0,
                     *             0.8944271802902222
                     *           ]
                     *         },
                     *         {
                     *           "object": "embedding",
                     *           "index": 1,
                     *           "embedding": [
                     *             0.30151134729385376,
                     *             -0.30151134729385376,
                     *             -0.9045340418815613,
                     *             0
                     *           ]
                     *         }
                     *       ],
                     *       "usage": {
                     *         "prompt_tokens": 2,
                     *         "total_tokens": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["EmbeddingsResponse"];
                };
            };
            400: components["responses"]["CallError400"];
            401: components["responses"]["CallError401"];
            402: components["responses"]["CallError402"];
            403: components["responses"]["CallError403"];
            404: components["responses"]["CallError404"];
            408: components["responses"]["CallError408"];
            409: components["responses"]["CallError409"];
            410: components["responses"]["CallError410"];
            413: components["responses"]["CallError413"];
            415: components["responses"]["CallError415"];
            429: components["responses"]["CallError429"];
            500: components["responses"]["CallError500"];
            502: components["responses"]["CallError502"];
            503: components["responses"]["CallError503"];
            504: components["responses"]["CallError504"];
        };
    };
    createImage: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body joins the running work or gets its stored answer, for 24 hours; another body is a 409. A stream ignores it */
                "Idempotency-Key"?: string;
                /** @description Without a key: an x402 payment, version 2, of what the 402 asked for, in base64; good for this very request alone, and again for 24 hours */
                "PAYMENT-SIGNATURE"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                    "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                    "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                    "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                    "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                    "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                    "idempotent-replayed": components["headers"]["idempotent-replayed"];
                    /** @description What became of the payment that came with the request, in base64; also on errors after it was taken */
                    "PAYMENT-RESPONSE"?: string;
                    "x-ignored-params": components["headers"]["x-ignored-params"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "created": 1795000000,
                     *       "expires_at": 1795086400,
                     *       "data": [
                     *         {
                     *           "revised_prompt": "A sunrise",
                     *           "url": "https://inference.example/media/file_2kT9vQ4mXw7pLr3sZb8n",
                     *           "expires_at": 1795086400
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ImageResponse"];
                };
            };
            400: components["responses"]["CallError400"];
            401: components["responses"]["CallError401"];
            /** @description Without a key: what to pay, or why the payment was not taken. `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
            402: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-should-retry": components["headers"]["x-should-retry"];
                    /** @description The body in base64, for x402 clients; without a key */
                    "PAYMENT-REQUIRED"?: string;
                    /** @description What became of the payment that came with the request, in base64; also on errors after it was taken */
                    "PAYMENT-RESPONSE"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentRequired"] | components["schemas"]["Error"];
                };
            };
            403: components["responses"]["CallError403"];
            404: components["responses"]["CallError404"];
            408: components["responses"]["CallError408"];
            409: components["responses"]["CallError409"];
            410: components["responses"]["CallError410"];
            413: components["responses"]["CallError413"];
            415: components["responses"]["CallError415"];
            429: components["responses"]["CallError429"];
            500: components["responses"]["CallError500"];
            502: components["responses"]["CallError502"];
            503: components["responses"]["CallError503"];
            504: components["responses"]["CallError504"];
        };
    };
    createMedia: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body joins the running work or gets its stored answer, for 24 hours; another body is a 409. A stream ignores it */
                "Idempotency-Key"?: string;
                /** @description Without a key: an x402 payment, version 2, of what the 402 asked for, in base64; good for this very request alone, and again for 24 hours */
                "PAYMENT-SIGNATURE"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MediaRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    "x-ratelimit-limit-requests": components["headers"]["x-ratelimit-limit-requests"];
                    "x-ratelimit-remaining-requests": components["headers"]["x-ratelimit-remaining-requests"];
                    "x-ratelimit-reset-requests": components["headers"]["x-ratelimit-reset-requests"];
                    "x-ratelimit-limit-tokens": components["headers"]["x-ratelimit-limit-tokens"];
                    "x-ratelimit-remaining-tokens": components["headers"]["x-ratelimit-remaining-tokens"];
                    "x-ratelimit-reset-tokens": components["headers"]["x-ratelimit-reset-tokens"];
                    "idempotent-replayed": components["headers"]["idempotent-replayed"];
                    /** @description What became of the payment that came with the request, in base64; also on errors after it was taken */
                    "PAYMENT-RESPONSE"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "gen_2kT9vQ4mXw7pLr3sZb8n",
                     *       "object": "media.generation",
                     *       "created": 1795000000,
                     *       "model": "local/video",
                     *       "expires_at": 1795086400,
                     *       "output": {
                     *         "duration": 1,
                     *         "resolution": "320x240"
                     *       },
                     *       "files": [
                     *         {
                     *           "url": "https://inference.example/media/file_2kT9vQ4mXw7pLr3sZb8n",
                     *           "content_type": "video/mp4",
                     *           "bytes": 10207,
                     *           "expires_at": 1795086400
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["MediaResponse"];
                };
            };
            400: components["responses"]["CallError400"];
            401: components["responses"]["CallError401"];
            /** @description Without a key: what to pay, or why the payment was not taken. `insufficient_balance`: the balance does not cover the most that the call can cost. `budget_exceeded`: what remains of the API key's budget does not cover the most that the call can cost. */
            402: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-should-retry": components["headers"]["x-should-retry"];
                    /** @description The body in base64, for x402 clients; without a key */
                    "PAYMENT-REQUIRED"?: string;
                    /** @description What became of the payment that came with the request, in base64; also on errors after it was taken */
                    "PAYMENT-RESPONSE"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentRequired"] | components["schemas"]["Error"];
                };
            };
            403: components["responses"]["CallError403"];
            404: components["responses"]["CallError404"];
            408: components["responses"]["CallError408"];
            409: components["responses"]["CallError409"];
            410: components["responses"]["CallError410"];
            413: components["responses"]["CallError413"];
            415: components["responses"]["CallError415"];
            429: components["responses"]["CallError429"];
            500: components["responses"]["CallError500"];
            502: components["responses"]["CallError502"];
            503: components["responses"]["CallError503"];
            504: components["responses"]["CallError504"];
        };
    };
    getFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description The part of the file, such as `bytes=0-1023`; several parts are ignored */
                Range?: string;
                /** @description Sends the whole file if it is not the one with this `ETag` */
                "If-Range"?: string;
                /** @description 304 if the file has this `ETag` */
                "If-None-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    ETag: string;
                    "Accept-Ranges": "bytes";
                    /** @description With a name; `attachment` for what browsers do not show */
                    "Content-Disposition": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                    "image/png": string;
                    "image/jpeg": string;
                    "image/webp": string;
                    "image/gif": string;
                    "image/avif": string;
                    "image/heic": string;
                    "image/bmp": string;
                    "image/tiff": string;
                    "video/mp4": string;
                    "video/webm": string;
                    "video/quicktime": string;
                    "video/matroska": string;
                    "audio/mpeg": string;
                    "audio/wav": string;
                    "audio/ogg": string;
                    "audio/opus": string;
                    "audio/flac": string;
                    "audio/aac": string;
                    "audio/mp4": string;
                    "audio/x-m4a": string;
                    "audio/webm": string;
                };
            };
            /** @description The part that was asked for */
            206: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    ETag: string;
                    "Accept-Ranges": "bytes";
                    /** @description With a name; `attachment` for what browsers do not show */
                    "Content-Disposition": string;
                    "Content-Range": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                    "image/png": string;
                    "image/jpeg": string;
                    "image/webp": string;
                    "image/gif": string;
                    "image/avif": string;
                    "image/heic": string;
                    "image/bmp": string;
                    "image/tiff": string;
                    "video/mp4": string;
                    "video/webm": string;
                    "video/quicktime": string;
                    "video/matroska": string;
                    "audio/mpeg": string;
                    "audio/wav": string;
                    "audio/ogg": string;
                    "audio/opus": string;
                    "audio/flac": string;
                    "audio/aac": string;
                    "audio/mp4": string;
                    "audio/x-m4a": string;
                    "audio/webm": string;
                };
            };
            /** @description It is the one that the caller has */
            304: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    ETag: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            404: components["responses"]["Error404"];
            410: components["responses"]["Error410"];
            /** @description The file ends before that part */
            416: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "Content-Range": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listUploads: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The uploads */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body joins the running work or gets its stored answer, for 24 hours; another body is a 409. A stream ignores it */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
                "multipart/form-data": {
                    /** Format: binary */
                    file: string;
                };
                "application/json": components["schemas"]["NewUpload"];
            };
        };
        responses: {
            /** @description The upload */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    "idempotent-replayed": components["headers"]["idempotent-replayed"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "upl_2kT9vQ4mXw7pLr3sZb8n",
                     *       "object": "upload",
                     *       "url": null,
                     *       "mime": "image/png",
                     *       "kind": "image",
                     *       "bytes": 1024,
                     *       "created_at": 1795000000,
                     *       "expires_at": 1795086400,
                     *       "status": "pending",
                     *       "cost_usd": "0.000000095",
                     *       "part_size": 16777216,
                     *       "links_expire_at": 1795003600,
                     *       "part_urls": [
                     *         {
                     *           "part_number": 1,
                     *           "url": "https://storage.example/file?signature=...",
                     *           "bytes": 1024
                     *         }
                     *       ],
                     *       "complete_url": "https://inference.example/v1/uploads/upl_2kT9vQ4mXw7pLr3sZb8n/complete"
                     *     }
                     */
                    "application/json": components["schemas"]["Upload"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            402: components["responses"]["Error402"];
            403: components["responses"]["Error403"];
            408: components["responses"]["Error408"];
            409: components["responses"]["Error409"];
            411: components["responses"]["Error411"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The upload */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            410: components["responses"]["Error410"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    deleteUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedUpload"];
                };
            };
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            410: components["responses"]["Error410"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    completeUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UploadCompletion"];
            };
        };
        responses: {
            /** @description The upload */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    "x-xm-cost-usd": components["headers"]["x-xm-cost-usd"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            410: components["responses"]["Error410"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listModels: {
        parameters: {
            query?: {
                /** @description The default is 20 */
                limit?: number;
                /** @description `last_id` of the page before */
                after_id?: string;
                /** @description `first_id` of the page after; not with `after_id` */
                before_id?: string;
                /** @description 0: the default, 50; more than 1000 is 1000 */
                pageSize?: number;
                /** @description The `nextPageToken` of the page before */
                pageToken?: string;
            };
            header?: {
                /** @description Any: the answer and its errors are Anthropic's */
                "anthropic-version"?: string;
                /** @description Any: the answer and its errors are Google's; it is not checked */
                "x-goog-api-key"?: string;
                /** @description The same, as Google's clients send it */
                "x-goog-api-client"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `ModelList`, `MessagesModelList` or `GeminiModelList` */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    /** @description The same as `x-request-id`, in Anthropic's format */
                    "request-id"?: string;
                    Vary: "anthropic-version, x-goog-api-key, x-goog-api-client";
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelList"] | components["schemas"]["MessagesModelList"] | components["schemas"]["GeminiModelList"];
                };
            };
            400: components["responses"]["ModelsError400"];
        };
    };
    getModel: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any: the answer and its errors are Anthropic's */
                "anthropic-version"?: string;
                /** @description Any: the answer and its errors are Google's; it is not checked */
                "x-goog-api-key"?: string;
                /** @description The same, as Google's clients send it */
                "x-goog-api-client"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `Model`, `MessagesModel` or `GeminiModel` */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    /** @description The same as `x-request-id`, in Anthropic's format */
                    "request-id"?: string;
                    Vary: "anthropic-version, x-goog-api-key, x-goog-api-client";
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "local/chat",
                     *       "object": "model",
                     *       "created": 1795000000,
                     *       "owned_by": "local",
                     *       "name": "Local chat",
                     *       "description": "Test model that runs inside the service: it answers from the prompt alone, calls tools and obeys JSON schemas.",
                     *       "type": "text",
                     *       "endpoint": "/v1/chat/completions",
                     *       "context_length": 131072,
                     *       "max_output_tokens": 8192,
                     *       "features": [
                     *         "tools",
                     *         "json",
                     *         "image",
                     *         "audio",
                     *         "file"
                     *       ],
                     *       "input_modalities": [
                     *         "text",
                     *         "image",
                     *         "file",
                     *         "audio"
                     *       ],
                     *       "output_modalities": [
                     *         "text"
                     *       ],
                     *       "supported_parameters": [
                     *         "max_tokens",
                     *         "max_completion_tokens",
                     *         "stop",
                     *         "seed",
                     *         "tools",
                     *         "tool_choice",
                     *         "parallel_tool_calls",
                     *         "response_format",
                     *         "structured_outputs"
                     *       ],
                     *       "reasoning": null,
                     *       "deprecated_at": null,
                     *       "x_elite_discount_bps": 1000,
                     *       "x_pricing": {
                     *         "input": {
                     *           "unit": "1M_tokens",
                     *           "list_usd": "0.10",
                     *           "elite_usd": "0.09"
                     *         },
                     *         "cached_input": {
                     *           "unit": "1M_tokens",
                     *           "list_usd": "0.05",
                     *           "elite_usd": "0.045"
                     *         },
                     *         "audio_input": {
                     *           "unit": "1M_tokens",
                     *           "list_usd": "0.30",
                     *           "elite_usd": "0.27"
                     *         },
                     *         "output": {
                     *           "unit": "1M_tokens",
                     *           "list_usd": "0.40",
                     *           "elite_usd": "0.36"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Model"] | components["schemas"]["MessagesModel"] | components["schemas"]["GeminiModel"];
                };
            };
            404: components["responses"]["ModelsError404"];
        };
    };
    getBalance: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The balance */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Balance"];
                };
            };
            401: components["responses"]["Error401"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    updateAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description null removes the threshold */
                    alert_below_usd?: string | null;
                };
            };
        };
        responses: {
            /** @description The account */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listUsage: {
        parameters: {
            query?: {
                /** @description The first day; default: 30 days before the end of `to` */
                from?: string;
                /** @description The last day; default: today. At most 366 days */
                to?: string;
                /** @description Any of day, model, key, endpoint, separated by commas; default: day */
                group_by?: string;
                key?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sums, in the order of their groups; at most 10,000 */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        object: "list";
                        data: components["schemas"]["UsageSums"][];
                        /** @constant */
                        has_more: false;
                        next: null;
                    };
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getInvoice: {
        parameters: {
            query: {
                month: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The month */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listRequests: {
        parameters: {
            query?: {
                status?: "succeeded" | "failed" | "cancelled";
                model?: string;
                key?: string;
                /** @description Ended at this time or later, in unix seconds */
                from?: number;
                /** @description Ended before this time, in unix seconds */
                to?: number;
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calls */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        object: "list";
                        data: components["schemas"]["Request"][];
                        has_more: boolean;
                        next: string | null;
                    };
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestDetail"];
                };
            };
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getGeneration: {
        parameters: {
            query: {
                /** @description The request id, or the id of the answer */
                id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        data: components["schemas"]["Generation"];
                    };
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getOwnKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnKey"];
                };
            };
            401: components["responses"]["Error401"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            /** @description The key, with its secret */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewKeyWithSecret"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            408: components["responses"]["Error408"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, with `revoked_at` */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    updateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KeyPatch"];
            };
        };
        responses: {
            /** @description The key */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listTopups: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The top-ups */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopupList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createTopup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTopup"];
            };
        };
        responses: {
            /** @description The top-up */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Topup"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getTopup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The top-up */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Topup"];
                };
            };
            401: components["responses"]["Error401"];
            403: components["responses"]["Error403"];
            404: components["responses"]["Error404"];
            429: components["responses"]["Error429"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
}
