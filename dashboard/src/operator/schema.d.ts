// Written by `npm run docs` from the OpenAPI document: do not edit.

export interface paths {
    "/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of the whole service; cheap, for every second */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Live worker processes */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/upstreams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The catalog's upstreams, with their state */
        get: operations["listUpstreams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The catalog's models, with the state of their upstreams */
        get: operations["listCatalog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Changes by operators, newest first */
        get: operations["listAuditRecords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Accounts, newest first */
        get: operations["listAccounts"];
        put?: never;
        /** Create an account */
        post: operations["createAccount"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/accounts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One account with its balance */
        get: operations["getAccount"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Rename, freeze, or change the tier */
        patch: operations["updateAccount"];
        trace?: never;
    };
    "/accounts/{id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's keys, newest first */
        get: operations["listKeys"];
        put?: never;
        /** Create a key; the answer has its secret, only this once */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a key, within a second in every instance */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        /** Change a key */
        patch: operations["updateKey"];
        trace?: never;
    };
    "/accounts/{id}/credits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add to a balance, once for each idempotency_key
         * @description A negative amount takes back, and is a 409 if more than is available.
         */
        post: operations["createCredit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/accounts/{id}/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The account's ledger, newest first */
        get: operations["listEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Calls of all accounts, newest first
         * @description A page may be short, or empty, while `has_more` is true: what no index has is compared with some thousand calls. Over all accounts `model`, `endpoint` and `upstream` need `code`, or `status` with `failed` or `cancelled`, beside them.
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
    "/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The entry of one call, also a restored one, or a request that was refused in the last 24 hours */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ledger/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compares credits less costs with the balances
         * @description The sums of the parts are those of all accounts.
         */
        get: operations["checkLedger"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/holds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is held for calls that run, oldest first */
        get: operations["listHolds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/archives": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Archived months, newest first */
        get: operations["listArchives"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/archives/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One month, with the progress of its restore */
        get: operations["getArchive"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/archives/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Have a worker copy a month back */
        post: operations["restoreArchive"];
        /** Remove what was restored */
        delete: operations["removeRestored"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/owed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Unused amounts of x402 payments, in the order of their ids */
        get: operations["listOwed"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/owed/total": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Their sum */
        get: operations["getOwedTotal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/owed/{id}/refunds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Record what was paid back on chain, once a transaction */
        post: operations["recordRefund"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/buyback/accruals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** By token, what is in no batch yet */
        get: operations["listAccruals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/buyback/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Purchases, newest first */
        get: operations["listBatches"];
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
        /** @description What cannot be read is null */
        Overview: {
            /** @constant */
            object: "overview";
            /** @description unix seconds */
            at: number;
            /** @description Of all processes, up to 5 s old; not the ledger */
            traffic: {
                last_5_minutes: components["schemas"]["TrafficCount"];
                last_hour: components["schemas"]["TrafficCount"];
                last_day: components["schemas"]["TrafficCount"];
                /** @description The last 60, oldest first */
                minutes: components["schemas"]["TrafficPoint"][];
                /** @description The last 24, oldest first */
                hours: components["schemas"]["TrafficPoint"][];
            } | null;
            pools: {
                /** @enum {string} */
                pool: "chat" | "embeddings" | "image" | "media" | "maintenance";
                workers: number;
                running: number;
                free: number;
                waiting: number;
                oldest_wait_seconds: number;
            }[] | null;
            workers: number | null;
            /** @description A worker has another catalog than this API instance */
            catalog_differs: boolean;
            upstreams: {
                id: string;
                /**
                 * @description `open`: the circuit breaker is
                 * @enum {string}
                 */
                state: "ready" | "open" | "no key";
            }[];
            stores: {
                /** @enum {string} */
                name: "mongodb" | "redis" | "s3";
                ok: boolean;
                ping_ms: number | null;
            }[];
            /** @description null: no maintenance worker has counted within two minutes */
            money: {
                holds: {
                    open: number;
                    oldest_seconds: number;
                };
                leases: {
                    open: number;
                    oldest_seconds: number;
                };
                undecided: number;
            } | null;
            /** @description The last complete check by a maintenance worker */
            ledger: {
                faults: number;
                /** @example 12.5 */
                difference_usd: string;
                /** @description unix seconds */
                checked_at: number;
            } | null;
            owed: {
                /** @example 12.5 */
                owed_usd: string;
                payments: number;
            } | null;
        };
        TrafficCount: {
            /** @description Answered and refused */
            calls: number;
            /** @description With a status of 500 or more */
            failed: number;
            /** @description With a status of 400 or more */
            refused: number;
            /** @example 12.5 */
            charged_usd: string;
        };
        TrafficPoint: {
            /** @description When it begins */
            at: number;
            /** @description Answered and refused */
            calls: number;
            /** @description With a status of 500 or more */
            failed: number;
            /** @description With a status of 400 or more */
            refused: number;
            /** @example 12.5 */
            charged_usd: string;
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
        WorkerList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Worker"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Worker: {
            id: string;
            /** @constant */
            object: "worker";
            version: string | null;
            started_at: number | null;
            catalog: string;
            /** @description It has this API instance's catalog */
            same_catalog: boolean;
            pools: {
                [key: string]: {
                    free: number;
                    running: number;
                };
            };
            upstreams: {
                [key: string]: "ready" | "open" | "no key";
            };
        };
        UpstreamList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Upstream"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Upstream: {
            id: string;
            /** @constant */
            object: "upstream";
            provider: string;
            /**
             * @description The best among the workers
             * @enum {string}
             */
            state: "ready" | "open" | "no key";
            workers: {
                ready: number;
                open: number;
                no_key: number;
            };
            models: string[];
            base_url: string | null;
            /** @description Calls at once from one worker process */
            concurrency: number | null;
        };
        CatalogModelList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["CatalogModel"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        CatalogModel: {
            id: string;
            /** @constant */
            object: "catalog_model";
            name: string;
            owned_by: string;
            type: string;
            endpoint: string;
            /** @description Some worker has the key of one of its upstreams */
            listed: boolean;
            deprecated_at: number | null;
            elite_discount_bps: number;
            pricing: {
                [key: string]: {
                    unit: string;
                    list_usd: string;
                    elite_usd: string;
                };
            };
            /** @description In the order in which they are tried */
            upstreams: {
                id: string;
                /** @description Its name there */
                model: string;
                /**
                 * @description `open`: the circuit breaker is
                 * @enum {string}
                 */
                state: "ready" | "open" | "no key";
            }[];
        };
        AuditRecordList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AuditRecord"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        AuditRecord: {
            id: string;
            /** @constant */
            object: "audit_record";
            /** @description The name of the operator's token */
            who: string;
            /** @example POST /accounts/{id}/credits */
            action: string;
            /** @description Ids of what was changed or made, and of its account */
            targets: string[];
            /** @description The request's body */
            changes: {
                [key: string]: unknown;
            } | null;
            request_id: string;
            /** @description unix seconds */
            created_at: number;
            /** @description null: not known; the change may be done or not */
            status: number | null;
            /** @description Of the error */
            code: string | null;
        };
        AdminAccountList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AdminAccount"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        AdminAccount: {
            id: string;
            /** @constant */
            object: "account";
            name: string;
            /** @enum {string} */
            tier: "standard" | "elite";
            /** @description Its calls are refused */
            frozen: boolean;
            buyback_token: string | null;
            /**
             * @description Credits less decided costs
             * @example 12.5
             */
            balance_usd: string;
            /** @example 12.5 */
            available_usd: string;
            /** @example 12.5 */
            held_usd: string;
            /** @description Holds and leases */
            open_holds: number;
            /** @description unix seconds */
            created_at: number;
        };
        ListedKeyList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ListedKey"][];
            has_more: boolean;
            /** @description `after` of the next page */
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
        AdminEntry: {
            id: string;
            /** @constant */
            object: "entry";
            account: string;
            /** @enum {string} */
            kind: "credit" | "adjustment" | "usage" | "storage" | "refund" | "payout";
            /**
             * @description Signed
             * @example 12.5
             */
            amount_usd: string;
            /**
             * @description The cost of this call was given back; not said in lists of the ledger
             * @constant
             */
            refunded?: true;
            /** @description unix seconds */
            created_at: number;
            idempotency_key?: string;
            reason?: string;
            transaction?: string;
            buyback?: {
                token: string;
                /** @example 12.5 */
                amount_usd: string;
                batch: string | null;
            };
            request?: components["schemas"]["AdminRequest"];
        };
        AdminRequest: {
            key: string | null;
            endpoint: string | null;
            model: string | null;
            upstream: string | null;
            attempts: components["schemas"]["AdminAttempt"][];
            /** @enum {string} */
            status: "succeeded" | "failed" | "cancelled" | "refused";
            error?: string;
            /** @description Of the answer to a refused request, which is not in the ledger */
            http_status?: number;
            usage: {
                [key: string]: number;
            };
            estimated: boolean;
            queue_ms: number | null;
            first_token_ms: number | null;
            total_ms: number;
            /** @example 12.5 */
            shortfall_usd: string;
            /** @example 12.5 */
            upstream_cost_usd?: string;
        };
        AdminAttempt: {
            upstream: string | null;
            /** @description If it is not the request's */
            model?: string;
            /** @description From the call's acceptance */
            started_ms: number | null;
            duration_ms: number | null;
            /** @enum {string} */
            outcome: "succeeded" | "failed" | "refused" | "busy" | "timeout" | "cancelled";
            status?: number;
            code?: string;
        };
        AdminEntryList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AdminEntry"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        /** @description Of the accounts that this part checked */
        LedgerCheck: {
            ok: boolean;
            accounts: number;
            /** @example 12.5 */
            difference_usd: string;
            open_holds: number;
            overdue_holds: number;
            oldest_open_hold_seconds: number;
            undecided: number;
            /** @description About how many accounts there are */
            of_accounts: number;
            /** @description null: all accounts are checked. Else the `after` of the next part */
            next: string | null;
        };
        HoldList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Hold"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Hold: {
            /** @description The request's or the lease's */
            id: string;
            /** @enum {string} */
            object: "hold" | "lease";
            account: string;
            /** @example 12.5 */
            amount_usd: string;
            /** @description unix seconds */
            held_at: number;
            /** @description unix seconds */
            expires_at: number;
        };
        ArchiveList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Archive"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Archive: {
            /** @description The month, `2026-01` */
            id: string;
            /** @constant */
            object: "archive";
            parts: number;
            entries: number;
            /** @example 12.5 */
            amount_usd: string;
            bytes: number;
            archived_at?: number | null;
            restore: {
                /** @enum {string} */
                state: "restoring" | "restored" | "removing";
                account: string | null;
                /** @description Of the archive's parts, those that are done */
                parts: number;
            } | null;
        };
        OwedList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Owed"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Owed: {
            id: string;
            /** @constant */
            object: "owed";
            account: string;
            payer: string | null;
            transaction: string | null;
            /** @example 12.5 */
            paid_usd: string;
            /** @example 12.5 */
            owed_usd: string;
            /** @description unix seconds */
            paid_at: number;
            /** @description unix seconds */
            good_until: number;
        };
        OwedTotal: {
            /** @constant */
            object: "owed_total";
            /** @example 12.5 */
            owed_usd: string;
            payments: number;
        };
        AccrualList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Accrual"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        Accrual: {
            /** @constant */
            object: "accrual";
            token: string;
            /** @example 12.5 */
            amount_usd: string;
            entries: number;
        };
        BuybackBatchList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["BuybackBatch"][];
            has_more: boolean;
            /** @description `after` of the next page */
            next: string | null;
        };
        BuybackBatch: {
            id: string;
            /** @constant */
            object: "batch";
            token: string;
            state: string;
            /** @example 12.5 */
            amount_usd: string;
            entries: number;
            /** @description unix seconds */
            created_at: number;
            executor: string | null;
            transaction: string | null;
            spent_usd: string | null;
            /** @description In the token's smallest unit */
            received: string | null;
            done_at: number | null;
        };
    };
    responses: {
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
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Names the request, its charge and its log lines */
        "x-request-id": string;
        /** @description How to send a key */
        "www-authenticate": "Bearer";
        /** @description Seconds to wait before the next try */
        "Retry-After": number;
        /** @description Sent where a retry cannot succeed, or would be charged twice; official clients obey it */
        "x-should-retry": "false";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The overview */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listWorkers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listUpstreams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpstreamList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listCatalog: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CatalogModelList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listAuditRecords: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
                who?: string;
                action?: string;
                /** @description An id that was changed or made, or its account's */
                target?: string;
                /** @description unix seconds */
                from?: number;
                /** @description unix seconds, not included */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditRecordList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listAccounts: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
                /** @description An id, or the beginning of names; in the order of names */
                search?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminAccountList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    /** @enum {string} */
                    tier?: "standard" | "elite";
                    buyback_token?: string | null;
                };
            };
        };
        responses: {
            /** @description The account */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminAccount"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The account */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminAccount"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    updateAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    /** @enum {string} */
                    tier?: "standard" | "elite";
                    frozen?: boolean;
                    buyback_token?: string | null;
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
                    "application/json": components["schemas"]["AdminAccount"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedKeyList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
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
            };
        };
        responses: {
            /** @description The key and its secret */
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
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The revoked key */
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
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    updateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
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
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    createCredit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    amount_usd: string;
                    idempotency_key: string;
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The entry that the key had made before */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntry"];
                };
            };
            /** @description The new entry */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntry"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
                kind?: "credit" | "adjustment" | "usage" | "storage" | "refund" | "payout";
                /** @description Those of the archive */
                restored?: "true" | "false";
            };
            header?: never;
            path: {
                /** @description The account's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntryList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listRequests: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
                account?: string;
                /** @description Needs its account beside it */
                key?: string;
                model?: string;
                endpoint?: string;
                status?: "succeeded" | "failed" | "cancelled";
                code?: string;
                upstream?: string;
                /** @description unix seconds */
                from?: number;
                /** @description unix seconds, not included */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntryList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The `x-request-id` of the call */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entry */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntry"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    checkLedger: {
        parameters: {
            query?: {
                /** @description Reads every entry, not only those since the last checkpoint */
                full?: "true" | "false";
                /** @description Ends after so many pages of 1,000 accounts; default: all */
                pages?: number;
                /** @description `next` of the part before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LedgerCheck"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listHolds: {
        parameters: {
            query?: {
                /** @description The default is 50 */
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
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HoldList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listArchives: {
        parameters: {
            query?: {
                /** @description The default is 50 */
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
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArchiveList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getArchive: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The month, such as `2026-01` */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The archive */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Archive"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    restoreArchive: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The month, such as `2026-01` */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    account?: string;
                };
            };
        };
        responses: {
            /** @description The archive */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Archive"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    removeRestored: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The month, such as `2026-01` */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The archive */
            202: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Archive"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listOwed: {
        parameters: {
            query?: {
                /** @description The default is 50 */
                limit?: number;
                /** @description `next` of the page before */
                after?: string;
                /** @description Only what its payer can no longer use */
                over?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwedList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    getOwedTotal: {
        parameters: {
            query?: {
                /** @description Only what its payer can no longer use */
                over?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sum */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwedTotal"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    recordRefund: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The payment's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    amount_usd: string;
                    transaction: string;
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The entry that the transaction had made before */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntry"];
                };
            };
            /** @description The new entry */
            201: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminEntry"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            404: components["responses"]["Error404"];
            408: components["responses"]["Error408"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            415: components["responses"]["Error415"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listAccruals: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccrualList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
    listBatches: {
        parameters: {
            query?: {
                /** @description The default is 50 */
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
            /** @description A page */
            200: {
                headers: {
                    "x-request-id": components["headers"]["x-request-id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuybackBatchList"];
                };
            };
            400: components["responses"]["Error400"];
            401: components["responses"]["Error401"];
            500: components["responses"]["Error500"];
            503: components["responses"]["Error503"];
        };
    };
}
