@testable import SIP

/// The flows of the draft that became RFC 5589: one who talks to the transferor goes on with the target.
extension CallFlowTable {
    private static let (transferor, transferee, target) = (
        "sips:transferor@atlanta.example.com", "sips:transferee@biloxi.example.com",
        "sips:transfertarget@chicago.example.com"
    )
    private static let moved = [
        "transfer accepted(status: 202)", "transfer progress(status: 100)", "transfer done(status: 200)",
        "ended us hungUp",
    ]
    private static let movedBehind = [
        "transfer accepted(status: 202)", "transfer progress(status: 100)", "ended them hungUp",
        "transfer done(status: 200)", "ended us hungUp",
    ]

    private static func transfer(
        _ section: String,
        _ party: String,
        _ identity: String,
        _ verbs: [String: [FlowVerb]],
        told: [String]
    ) -> Row {
        other("cc-transfer-06", section, party, identity, .tls, verbs, told: told)
    }

    static let transfers: [Row] =
        ["5.1", "5.2"].flatMap(blindTransfer) + ["6.3", "7"].flatMap(attendedTransfer)

    private static let referrer = "who is transferred may tell who asked for it (RFC 3892)"
    private static let inCall = "it does not know Target-Dialog (RFC 4538), and asks within the call"
    private static let toldInCall = "it is told in the call, in which the REFER came"
    private static let notified = "a NOTIFY has one (RFC 3265)"

    private static func blindTransfer(_ section: String) -> [Row] {
        let isOutside = section == "5.1"
        var asked = transfer(
            section,
            "Transferee",
            transferee,
            ["\(section)-01": [.call(transferor)], "\(section)-06": [.acceptTransfer]],
            told: answered + ["asked for \(target)"] + answered + ["ended them hungUp"]
        )
        .but("\(section)-07", "Contact", notified)
        var asking = transfer(
            section,
            "Transferor",
            transferor,
            ["\(section)-02": [.answer()], "\(section)-03": [.transfer(target)], "\(section)-02+BYE": [.hangUp()]],
            told: ["incoming"] + answered + moved
        )
        .but("\(section)-03", "Referred-By", referrer)
        if isOutside {
            asking = asking.but("5.1-03", "Target-Dialog", inCall).but("5.1-03", "Require", inCall)
            asked = asked.but("5.1-04", "Contact", notified)
            for notify in ["5.1-04", "5.1-07"] {
                asked = asked.but(notify, "Call-ID", toldInCall).but(notify, "To", toldInCall)
            }
        }
        return [
            asked, asking,
            transfer(
                section,
                "Transfer Target",
                target,
                ["\(section)-06+200": [.answer()]],
                told: ["incoming"] + answered
            ),
        ]
    }

    private static func attendedTransfer(_ section: String) -> [Row] {
        let (refer, invite) = section == "7" ? ("7-01", "7-02") : ("6.3-05", "6.3-06")
        let asking = transfer(
            section,
            "Transferor",
            transferor,
            [
                "6.3-02": [.answer()], "6.3-03": [.call(target)], refer: [.transferToSecond],
                "6.3-02+BYE": [.hangUp()],
            ],
            told: ["incoming"] + answered + answered + movedBehind
        )
        .but("6.3-03", "Require", "whether the target knows Replaces, it finds out later")
        .but(refer, "Target-Dialog", inCall).but(refer, "Require", inCall)
        return [
            transfer(
                section,
                "Transferee",
                transferee,
                ["6.3-01": [.call(transferor)], invite: [.acceptTransfer]],
                told: answered + ["asked for sips:482n4z24kdg@chicago.example.com;grid=8594958"] + answered
                    + ["ended them hungUp"]
            ),
            section == "7" ? asking : asking.but(refer, "Referred-By", referrer),
            transfer(
                section,
                "Transfer Target",
                target,
                ["6.3-04": [.answer()], "\(invite)+200": [.answer(1)]],
                told: ["incoming"] + answered + ["incoming"] + answered + ["ended us replaced"]
            ),
        ]
    }
}
