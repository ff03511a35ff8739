import { invalidWebhookUrl } from "#errors";
import { AddressRefused, type ReceiverAddresses } from "#platform/receiver-addresses";

/**
 * Resolves with the URL in its normal form if webhooks may be sent there. Workers check the address again for each
 * connection. Throws 400, naming the parameter.
 */
export type CheckWebhookUrl = (url: string, param: string) => Promise<string>;

export const createUrlCheck =
  (receivers: ReceiverAddresses): CheckWebhookUrl =>
  async (text, param) => {
    try {
      return (await receivers.locate(text)).url.href;
    } catch (error) {
      throw error instanceof AddressRefused ? invalidWebhookUrl(param, error.message) : error;
    }
  };
