public import CallBasics
internal import SIP

/// Why a phone cannot do what it is asked to; the message names the remedy.
public typealias PhoneError = Failure<PhoneFault>

/// What keeps a phone from doing what it is asked to.
public enum PhoneFault: Hashable, Sendable {
    /// An address is no SIP URI, or none of this machine, or a character is no key.
    case invalid
    /// A port is another's, or none is left.
    case noPort
    /// A file of certificates or keys cannot be used.
    case security
    /// The machine's name servers cannot be asked.
    case noNames
    /// There is no network; what was asked for is done once there is.
    case noNetwork
    /// No answer came.
    case unanswered
    /// The other side answered with this status.
    case refused(status: Int)
    /// What is asked for does not fit what the call, or the account, is at.
    case state
    /// A codec is unknown, or there is no sound to be had.
    case noSound
}

extension PhoneError {
    /// The URI of somebody.
    static func uri(_ text: String) throws(PhoneError) -> SIPURI {
        do throws(SIPError) {
            return try SIPURI(callable: text)
        } catch {
            throw PhoneError(.invalid, "\(text): \(error.message)")
        }
    }

    /// Does what an agent may refuse.
    static func wrapping<Result>(_ fault: PhoneFault, _ body: () throws(SIPError) -> Result) throws(PhoneError)
        -> Result
    {
        do throws(SIPError) { return try body() } catch { throw PhoneError(fault, error.message) }
    }
}
