"""The actions of the API, one file each (single and batch form together): checked parameters in, result out."""
